import pytest
from lxml import etree

from rag_assets.parsing.markup.mathematics import formula_text

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/math"
WEB = "http://www.w3.org/1998/Math/MathML"


def run(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def part(name: str, *inside: str) -> str:
    return f"<m:{name}>{''.join(inside)}</m:{name}>"


def fraction(above: str, below: str) -> str:
    return part("f", part("num", above), part("den", below))


def scripts(name: str, base: str, **marks: str) -> str:
    return part(name, part("e", base), *(part(mark, run(text)) for mark, text in marks.items()))


ROOT = part("rad", '<m:radPr><m:degHide m:val="1"/></m:radPr>', part("deg"), part("e", run("b") + run("-4ac")))
SUM = part(
    "nary",
    '<m:naryPr><m:chr m:val="∑"/></m:naryPr>',
    part("sub", run("i=1")),
    part("sup", run("n")),
    part("e", scripts("sSub", run("x"), sub="i")),
)
UNIT_MATRIX = part("m", *(part("mr", part("e", run(a)), part("e", run(b))) for a, b in (("1", "0"), ("0", "1"))))
CASES = part("eqArr", part("e", run("x&amp;, x≥0")), part("e", run("-x&amp;, x&lt;0")))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (fraction(run("a"), run("b")), "a/b"),
        (fraction(run("a+b"), run("2c")), "(a+b)/(2c)"),
        (run("2") + fraction(run("a"), run("b")) + run("x"), "2 a/b x"),
        (fraction(run("売上"), run("件数")) + run("×100"), "売上/件数×100"),
        (run("x=") + fraction(run("-b±") + ROOT, run("2a")), "x=(-b±√(b-4ac))/(2a)"),
        (part("rad", part("deg", run("3")), part("e", run("x"))), "∛x"),
        (part("rad", part("deg", run("n")), part("e", run("x+1"))), "√[n](x+1)"),
        (SUM, "∑_(i=1)^n x_i"),
        (part("nary", part("sub", run("0")), part("sup", run("1")), part("e", run("f(x)dx"))), "∫_0^1 f(x)dx"),
        (scripts("sSubSup", run("a"), sub="ij", sup="2"), "a_(ij)^2"),
        (scripts("sSup", part("d", part("e", run("a+b"))), sup="n+1"), "(a+b)^(n+1)"),
        (scripts("sSub", run("x"), sub="1") + scripts("sSub", run("x"), sub="2"), "x_1 x_2"),
        (part("func", part("fName", scripts("limLow", run("lim"), lim="n→∞")), part("e", run("x"))), "lim_(n→∞) x"),
        (part("d", part("e", UNIT_MATRIX)), "(1, 0; 0, 1)"),
        (part("d", '<m:dPr><m:begChr m:val="{"/><m:endChr m:val=""/></m:dPr>', part("e", CASES)), "{x, x≥0; -x, x<0"),
        (part("acc", part("e", run("x"))), "x\u0302"),
        (part("f", '<m:fPr><m:type m:val="noBar"/></m:fPr>', part("num", run("n")), part("den", run("k"))), "(n¦k)"),
        ("<m:box>" * 150 + run("x") + "</m:box>" * 150, "x"),
    ],
)
def test_office_formulas_read_in_one_line(formula: str, expected: str) -> None:
    assert formula_text(etree.fromstring(f'<m:oMath xmlns:m="{OFFICE}">{formula}</m:oMath>')) == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", "a/(b+1)"),
        ("<msqrt><msup><mi>b</mi><mn>2</mn></msup><mo>−</mo><mn>4</mn></msqrt>", "√(b^2−4)"),
        ("<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><msub><mi>x</mi><mi>i</mi></msub>", "∑_i^n x_i"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "x\u0305"),
        ("<semantics><mi>E</mi><annotation>E in TeX</annotation></semantics>", "E"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>", "[1, 2]"),
        ("<mi>f</mi><mo>\u2061</mo><mfenced><mi>x</mi><mi>y</mi></mfenced>", "f(x,y)"),
    ],
)
def test_web_formulas_read_in_one_line(formula: str, expected: str) -> None:
    assert formula_text(etree.fromstring(f'<math xmlns="{WEB}">{formula}</math>')) == expected
