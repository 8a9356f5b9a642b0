// Elements, the tip at the pointer and the panel with all that is known of a candidate.
import { changes, digits, fields, positive, refused, summary, time, timeAndSpread, why }
  from './words.js';

const tip = document.getElementById('tip');
const panel = document.getElementById('panel');
let opener = null; // what had the focus before the panel was shown

export function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function showTip(text, event, at) {
  tip.textContent = text;
  tip.hidden = false;
  const box = at.getBoundingClientRect();
  const x = event?.clientX ?? box.right;
  const y = event?.clientY ?? box.bottom;
  const below = y + 18 + tip.offsetHeight <= innerHeight;
  const left = Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8));
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? y + 18 : Math.max(8, y - tip.offsetHeight - 12)}px`;
}

export function hideTip() {
  tip.hidden = true;
}

function rowsOf(rows) {
  const table = element('table');
  for (const [name, value] of rows) {
    const row = table.insertRow();
    row.append(element('th', name, { scope: 'row' }), element('td', value));
  }
  return table;
}

function figuresOf(problem, one) {
  if (refused(one)) return [];
  const reference = positive(one.reference_us) ? one.reference_us : problem.reference_us;
  const ratio = positive(reference)
    ? `${time(reference)}, ${(reference / one.median_us).toFixed(2)}× its speed`
    : 'none';
  return [
    ['median', timeAndSpread(one)],
    ['reference', ratio],
    ['error', `${digits(one.error)}, at most ${digits(one.max_error)}`],
  ];
}

function evidenceRow(seen) {
  const sums = seen.sums_checked ? `, ${seen.sums_checked} lines by their sums` : '';
  const rows = `${seen.rows_checked} of ${seen.rows} rows`;
  return [seen.family, `${digits(seen.error)} of ${digits(seen.bound)} allowed, ${rows}${sums}`];
}

export function showPanel(problem, one) {
  const all = problem.candidates;
  const parents = all.filter(other => (one.parents ?? []).includes(other.schedule));
  const children = all.filter(other => (other.parents ?? []).includes(one.schedule));
  const changed = parents.flatMap(parent => changes(one, parent));
  const numbers = list => list.map(other => `#${other.n}`).join(', ');
  const close = element('button', 'Close', { class: 'close' });
  close.addEventListener('click', hidePanel);
  panel.replaceChildren(
    close,
    element('h2', `Candidate ${one.n}`),
    element('p', one.schedule, { class: 'hint' }),
    rowsOf([
      ['stage', one.stage],
      ...figuresOf(problem, one),
      ['came from', parents.length ? `${numbers(parents)} by ${changed.join(', ')}` : 'no other'],
      ...(one.action?.sentence ? [['idea', one.action.sentence]] : []),
      ['led to', children.length ? numbers(children) : 'none'],
    ]),
  );
  if (one.error_code) {
    const said = ['message', 'place', 'expected', 'found', 'remedy'].filter(key => why(one)[key]);
    panel.append(
      element('h3', 'Refused'),
      rowsOf([['code', one.error_code], ...said.map(key => [key, why(one)[key]])]),
    );
  }
  const choices = Object.entries(fields(one)).map(([key, value]) => [key, String(value)]);
  panel.append(element('h3', `Schedule: ${one.family}`), rowsOf(choices));
  const evidence = one.verdict?.evidence ?? [];
  if (evidence.length) panel.append(element('h3', 'Evidence'), rowsOf(evidence.map(evidenceRow)));
  panel.append(
    element('h3', 'Made by'),
    rowsOf([['environment', one.environment || '–'], ['source', one.source_hash || '–']]),
  );
  if (panel.hidden) opener = document.activeElement;
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.focus();
}

export function hidePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  opener?.focus?.();
}

addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  hidePanel();
  hideTip();
});

const kSteps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// Marks that stand for candidates: pointer, click, and the keyboard, on which arrows go from mark
// to mark. `first` is the mark that Tab comes to.
export function answering(nodes, problem, candidates, first = 0) {
  nodes.forEach((node, i) => {
    const one = candidates[i];
    node.setAttribute('role', 'button');
    node.setAttribute('aria-label', summary(one));
    node.setAttribute('tabindex', i === Math.max(0, first) ? 0 : -1);
    node.addEventListener('pointermove', event => showTip(summary(one), event, node));
    node.addEventListener('pointerleave', hideTip);
    node.addEventListener('focus', () => {
      if (node.matches(':focus-visible')) showTip(summary(one), null, node);
    });
    node.addEventListener('blur', hideTip);
    node.addEventListener('click', () => {
      hideTip();
      showPanel(problem, one);
    });
    node.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        showPanel(problem, one);
      }
      const step = kSteps[event.key];
      if (!step) return;
      event.preventDefault();
      const next = nodes[(i + step + nodes.length) % nodes.length];
      node.setAttribute('tabindex', -1);
      next.setAttribute('tabindex', 0);
      next.focus();
    });
  });
}
