// From where the best came: its ancestors beneath each other, beside each what else was tried of
// it. A list, so that a long one is only longer.
import { answering, element } from './dom.js';
import { changes, refused, timeAndSpread } from './words.js';

const kShown = 4; // of what else was tried of one
const kMostSteps = 200;

// The best, what it came from, and so on to one that was proposed as it is.
function ancestors(best, bySchedule) {
  const chain = [];
  const seen = new Set();
  for (let one = best; one && !seen.has(one) && chain.length < kMostSteps;) {
    seen.add(one);
    chain.push(one);
    one = (one.parents ?? []).map(schedule => bySchedule.get(schedule)).find(Boolean);
  }
  return chain.reverse();
}

function byTime(a, b) {
  return (refused(a) - refused(b)) || (a.median_us - b.median_us);
}

function nodeOf(one, parent, css) {
  const figure = refused(one) ? one.error_code : timeAndSpread(one);
  const change = one.action?.sentence ?? (changes(one, parent).join(', ') || one.family);
  return element('button', `#${one.n}  ${figure} · ${change}`, { type: 'button', class: css });
}

export function showLineage(box, problem) {
  const all = problem.candidates;
  const bySchedule = new Map(all.map(one => [one.schedule, one]));
  const best = problem.best && bySchedule.get(problem.best.schedule);
  if (!best) return;
  const chain = ancestors(best, bySchedule);
  const inChain = new Set(chain);
  const childrenOf = new Map();
  for (const one of all) {
    for (const parent of one.parents ?? []) {
      if (!childrenOf.has(parent)) childrenOf.set(parent, []);
      childrenOf.get(parent).push(one);
    }
  }
  const nodes = [];
  const shown = [];
  const add = (to, one, parent, css) => {
    const node = nodeOf(one, parent, `node ${css}`);
    nodes.push(node);
    shown.push(one);
    to.append(node);
  };
  const list = element('ol');
  chain.forEach((one, i) => {
    const step = element('li');
    add(step, one, chain[i - 1], 'main');
    const tried = (childrenOf.get(one.schedule) ?? []).filter(other => !inChain.has(other));
    tried.sort(byTime);
    if (tried.length) step.append(element('span', 'Also tried of it:', { class: 'beside' }));
    for (const other of tried.slice(0, kShown)) add(step, other, one, refused(other) ? 'bad' : '');
    if (tried.length > kShown) {
      step.append(element('span', `and ${tried.length - kShown} more`, { class: 'beside' }));
    }
    list.append(step);
  });
  const caption = element('div', 'Lineage of the best', { class: 'caption' });
  const text = chain.length > 1
    ? 'What became of what, down to the best; each says what it changed.'
    : 'The best came from no other candidate: it was proposed as it is.';
  box.append(caption, element('p', text, { class: 'hint' }), list);
  box.hidden = false;
  answering(nodes, problem, shown, shown.indexOf(best));
}
