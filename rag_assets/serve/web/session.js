/** What the browser keeps: the language for later visits, the token until the window is closed. */

function kept(storage, name) {
  return {
    get() {
      try {
        return storage().getItem(name);
      } catch {
        return null; // storage is switched off
      }
    },
    set(value) {
      try {
        if (value) storage().setItem(name, value);
        else storage().removeItem(name);
      } catch {
        /* storage is switched off: it holds for this page only */
      }
    },
  };
}

export const keptLanguage = kept(() => localStorage, "rag_assets.language");
export const keptToken = kept(() => sessionStorage, "rag_assets.token");
