/**
 * Places for the nodes of a graph: springs along edges, repulsion between all nodes, a pull to the middle, with steps
 * that become shorter (Fruchterman and Reingold, 1991). It starts from a spiral, so that the same graph always looks
 * the same.
 */

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const STEPS = 250;
const PULL = 0.06;

/**
 * @param count nodes, a few hundred at most: each step looks at every pair.
 * @param edges `[one, other, strength]` with numbers of nodes, strength from 0 to 1.
 * @returns for each node `{x, y}`; neighbours are about 1 apart.
 */
export function layout(count, edges) {
  const nodes = Array.from({ length: count }, (_, at) => ({
    x: Math.sqrt(at + 0.5) * Math.cos(at * GOLDEN),
    y: Math.sqrt(at + 0.5) * Math.sin(at * GOLDEN),
    dx: 0,
    dy: 0,
  }));
  for (let step = 0; step < STEPS; step++) {
    repel(nodes);
    for (const [one, other, strength] of edges) attract(nodes[one], nodes[other], 0.5 + strength);
    move(nodes, Math.sqrt(count) * 0.25 * (1 - step / STEPS) + 0.01);
  }
  return nodes.map(({ x, y }) => ({ x, y }));
}

function repel(nodes) {
  for (let one = 0; one < nodes.length; one++) {
    for (let other = one + 1; other < nodes.length; other++) {
      const [from, to] = [nodes[one], nodes[other]];
      const x = from.x - to.x;
      const y = from.y - to.y;
      const square = x * x + y * y + 0.01;
      push(from, x / square, y / square);
      push(to, -x / square, -y / square);
    }
  }
}

function attract(from, to, strength) {
  const x = to.x - from.x;
  const y = to.y - from.y;
  const distance = Math.sqrt(x * x + y * y);
  push(from, x * distance * strength, y * distance * strength);
  push(to, -x * distance * strength, -y * distance * strength);
}

function push(node, x, y) {
  node.dx += x;
  node.dy += y;
}

function move(nodes, most) {
  for (const node of nodes) {
    push(node, -PULL * node.x, -PULL * node.y);
    const length = Math.sqrt(node.dx * node.dx + node.dy * node.dy) || 1;
    node.x += (node.dx / length) * Math.min(length, most);
    node.y += (node.dy / length) * Math.min(length, most);
    node.dx = node.dy = 0;
  }
}
