// Tables that sort by a click on a heading; that of candidates filters and opens details.
import { element, showPanel } from './dom.js';
import { refused } from './words.js';

function compared(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

function keyOf(row, column) {
  const cell = row.cells[column];
  return 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
}

function isUnknown(row, column) {
  return row.cells[column].classList.contains('unknown');
}

// What is unknown comes last, whichever way a column is sorted.
export function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element('button', head.textContent, { type: 'button' });
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const order = (a, b) => (isUnknown(a, column) - isUnknown(b, column))
        || (down ? -1 : 1) * compared(keyOf(a, column), keyOf(b, column));
      body.append(...[...body.rows].sort(order));
    });
  });
}

function filterAbove(box, rows) {
  const field = element('input', undefined, {
    type: 'search',
    placeholder: 'candidate-wrong, promoted …',
  });
  const label = element('label', 'Show only ');
  const shown = element('span', '', { role: 'status' });
  const bar = element('div', undefined, { class: 'filter' });
  label.append(field);
  bar.append(label, shown);
  box.before(bar);
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      if (!row.hidden) count += 1;
    }
    shown.textContent = words.length ? `${count} of ${rows.length}` : '';
  };
  field.addEventListener('input', filter);
  return text => {
    field.value = text;
    filter();
    box.scrollIntoView({ block: 'center' });
  };
}

// Rows open their candidate's details; a click on a code of refusal filters by it.
export function candidatesTable(section, problem) {
  const box = section.querySelector('.tablebox.candidates');
  const table = box?.querySelector('table');
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, i) => {
    const one = problem.candidates[i];
    const label = `details of candidate ${one.n}`;
    const button = element('button', String(one.n), { type: 'button', 'aria-label': label });
    row.dataset.i = i;
    row.classList.toggle('best', one.schedule === problem.best?.schedule);
    row.classList.toggle('refused', refused(one));
    row.cells[0].replaceChildren(button);
    row.addEventListener('click', () => showPanel(problem, one));
  });
  const showOnly = filterAbove(box, rows);
  for (const row of section.querySelector('.tablebox.refusals tbody')?.rows ?? []) {
    const code = row.cells[0].textContent;
    const label = `show the candidates refused for ${code}`;
    const button = element('button', code, { type: 'button', 'aria-label': label });
    row.cells[0].replaceChildren(button);
    button.addEventListener('click', () => showOnly(code));
  }
}
