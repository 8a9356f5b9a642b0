/*! Pictures are drawn with parts of D3 (d3-scale, d3-shape, d3-axis, d3-selection and what they use).
Copyright 2010-2019 Mike Bostock. All rights reserved.
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following
conditions are met: Redistributions of source code must retain the above copyright notice, this list of conditions and the
following disclaimer. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the
following disclaimer in the documentation and/or other materials provided with the distribution. Neither the name of the author nor
the names of contributors may be used to endorse or promote products derived from this software without specific prior written
permission. THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO
EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR
OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE. */

// The page reads without this script. With it plain pictures become ones that answer to pointer and keyboard, tables sort and
// filter, and every candidate shows its details.
import { axisBottom, axisLeft } from 'd3-axis';
import { scaleLinear, scaleLog } from 'd3-scale';
import { select } from 'd3-selection';
import { curveStepAfter, line, linkHorizontal } from 'd3-shape';

const data = JSON.parse(document.getElementById('data').textContent);
const tip = document.getElementById('tip'), panel = document.getElementById('panel');
const kDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

// ---------------------------------------------------------------- words

const number = value => (typeof value === 'number' && isFinite(value) ? value : 0);
const digits = value => (Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-3) ? value.toExponential(2) : kDigits.format(value));
const time = us => (us <= 0 ? '–' : us < 1000 ? `${digits(us)} µs` : us < 1e6 ? `${digits(us / 1e3)} ms` : `${digits(us / 1e6)} s`);
const refused = one => one.stage === 'refused' || number(one.median_us) <= 0;
const fields = one => one.fields?.fields ?? {};
const why = one => one.verdict?.refused ?? {};

// What tells a schedule from the one it came from: "block_m 64→128".
function changes(one, parent) {
  if (!parent) return [];
  const a = fields(parent), b = fields(one), out = one.family === parent.family ? [] : [`${parent.family}→${one.family}`];
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
    if (a[key] !== b[key]) out.push(`${key} ${a[key] ?? '–'}→${b[key] ?? '–'}`);
  return out;
}

function summary(one) {
  const head = refused(one) ? `refused: ${one.error_code || 'not timed'}\n${why(one).message ?? ''}`
    : `${time(one.median_us)}  (${time(one.low_us)} to ${time(one.high_us)})\nerror ${digits(one.error)}`;
  return `#${one.n}  ${one.schedule}\n${head}`;
}

// ---------------------------------------------------------------- tip and panel

function showTip(text, event, element) {
  tip.textContent = text;
  tip.hidden = false;
  const box = element.getBoundingClientRect(), x = event?.clientX ?? box.right, y = event?.clientY ?? box.bottom;
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? Math.max(8, y - tip.offsetHeight - 12) : y + 18}px`;
}
const hideTip = () => { tip.hidden = true; };

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function rowsOf(rows) {
  const table = element('table');
  for (const [name, value] of rows) {
    const row = table.insertRow();
    row.append(element('th', name, { scope: 'row' }), element('td', value));
  }
  return table;
}

let opener = null;
function showPanel(problem, one) {
  const all = problem.candidates, parents = all.filter(other => (one.parents ?? []).includes(other.schedule));
  const children = all.filter(other => (other.parents ?? []).includes(one.schedule));
  const close = element('button', 'Close', { class: 'close' });
  close.addEventListener('click', hidePanel);
  const changed = parents.flatMap(parent => changes(one, parent));
  panel.replaceChildren(close, element('h2', `Candidate ${one.n}`), element('p', one.schedule, { class: 'hint' }));
  const reference = number(one.reference_us) || problem.reference_us;
  panel.append(rowsOf([['stage', one.stage], ...(refused(one) ? [] : [
    ['median', `${time(one.median_us)}, 95 %: ${time(one.low_us)} to ${time(one.high_us)}`],
    ['reference', reference > 0 ? `${time(reference)}, ${(reference / one.median_us).toFixed(2)}× its speed` : 'none'],
    ['error', `${digits(one.error)}, at most ${digits(one.max_error)}`]]),
    ['came from', parents.length ? parents.map(parent => `#${parent.n}`).join(', ') + ` by ${changed.join(', ')}` : 'no other candidate'],
    ['led to', children.length ? children.map(child => `#${child.n}`).join(', ') : 'none']]));
  if (one.error_code) {
    panel.append(element('h3', 'Refused'), rowsOf([['code', one.error_code],
      ...['message', 'place', 'expected', 'found', 'remedy'].filter(key => why(one)[key]).map(key => [key, why(one)[key]])]));
  }
  panel.append(element('h3', `Schedule: ${one.family}`), rowsOf(Object.entries(fields(one)).map(([key, value]) => [key, String(value)])));
  const evidence = one.verdict?.evidence ?? [];
  if (evidence.length) {
    panel.append(element('h3', 'Evidence'), rowsOf(evidence.map(seen => [seen.family,
      `${digits(number(seen.error))} of ${digits(number(seen.bound))} allowed, ${seen.rows_checked} of ${seen.rows} rows${seen.sums_checked ? `, ${seen.sums_checked} lines by their sums` : ""}`])));
  }
  panel.append(element('h3', 'Made by'), rowsOf([['environment', one.environment || '–'], ['source', one.source_hash || '–']]));
  if (panel.hidden) opener = document.activeElement;
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.focus();
}
function hidePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  opener?.focus?.();
}
addEventListener('keydown', event => { if (event.key === 'Escape') { hidePanel(); hideTip(); } });

// Marks of a picture that stand for candidates: pointer, click, and the keyboard, on which arrows go from mark to mark.
function answering(marks, problem, candidate, first) {
  const nodes = marks.nodes();
  marks.attr('role', 'button').attr('aria-label', d => summary(candidate(d)))
    .attr('tabindex', (d, i) => (i === Math.max(0, first) ? 0 : -1)).each(function (d, i) {
      const one = candidate(d);
      this.addEventListener('pointermove', event => showTip(summary(one), event, this));
      this.addEventListener('pointerleave', hideTip);
      this.addEventListener('focus', () => { if (this.matches(':focus-visible')) showTip(summary(one), null, this); });
      this.addEventListener('blur', hideTip);
      this.addEventListener('click', () => { hideTip(); showPanel(problem, one); });
      this.addEventListener('keydown', event => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); showPanel(problem, one); }
        if (!step) return;
        event.preventDefault();
        const next = nodes[(i + step + nodes.length) % nodes.length];
        this.setAttribute('tabindex', -1);
        next.setAttribute('tabindex', 0);
        next.focus();
      });
    });
}

// ---------------------------------------------------------------- pictures

function svgIn(figure, width, height, label) {
  select(figure).select('svg').remove();
  return select(figure).append('svg').attr('viewBox', `0 0 ${width} ${height}`).attr('role', 'group').attr('aria-label', label);
}
function axes(svg, x, y, { left, right, top, bottom, across = false, yText }, xLabel, yLabel) {
  const short = value => (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-2) ? value.toExponential(0) : kDigits.format(value));
  const some = (scale, count) => { const all = scale.ticks(count); const round = all.filter(v => /^[125](\.0*)?e/.test(v.toExponential()));
    return all.length > count + 2 && round.length > 2 ? round : all.length > 2 * count ? all.filter((v, i) => i % 2 === 0) : all; };
  const xs = some(x, 8), ys = some(y, 6);
  svg.append('g').attr('class', 'grid').selectAll('line').data(ys).enter().append('line')
    .attr('x1', left).attr('x2', right).attr('y1', y).attr('y2', y);
  if (across) svg.append('g').attr('class', 'grid').selectAll('line').data(xs).enter().append('line')
    .attr('y1', top).attr('y2', bottom).attr('x1', x).attr('x2', x);
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${bottom})`).call(axisBottom(x).tickValues(xs).tickFormat(short).tickSizeOuter(0));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(axisLeft(y).tickValues(ys).tickFormat(yText ?? short).tickSizeOuter(0));
  svg.append('text').attr('class', 'label').attr('x', (left + right) / 2).attr('y', bottom + 40).attr('text-anchor', 'middle').text(xLabel);
  svg.append('text').attr('class', 'label').attr('x', left + 4).attr('y', top - 8).text(yLabel);
}
function domain(values, room = 0.06) {
  const low = Math.min(...values), high = Math.max(...values), factor = Math.max((high / low) ** room, 1.03);
  return [low / factor, high * factor];
}
function caption(figure, title, text) {
  const made = element('figcaption', title);
  made.append(element('small', text));
  figure.querySelector('figcaption')?.remove();
  figure.prepend(made);
}
function legend(figure, entries) {
  figure.querySelector('.legend')?.remove();
  const box = element('div', undefined, { class: 'legend' });
  for (const [text, colour, css = ''] of entries) box.append(element('span', text, { style: `--of: var(${colour})`, class: css }));
  figure.append(box);
}
const familiesOf = problem => [...new Set(problem.candidates.map(one => one.family))];
const colour = index => `c${index % 6}`;

// Every candidate in the order recorded: its time, its interval, the best so far, the reference; refused ones in a lane of their own.
function drawSearch(figure, problem) {
  const all = problem.candidates, right = all.filter(one => !refused(one));
  const lane = all.length > right.length, left = 66, end = 770, top = 26, bottom = lane ? 300 : 330;
  const svg = svgIn(figure, 900, lane ? 392 : 382, 'time of each candidate over the search');
  const reference = number(problem.reference_us);
  const x = scaleLinear([0.4, all.length + 0.6], [left, end]);
  const times = right.flatMap(one => [one.median_us, number(one.low_us) || one.median_us, number(one.high_us) || one.median_us]);
  const y = scaleLog(domain([...times, ...(reference > 0 ? [reference] : []), ...(times.length || reference > 0 ? [] : [1])]), [bottom, top]);
  if (lane) {
    svg.append('rect').attr('class', 'lane').attr('x', left).attr('width', end - left).attr('y', bottom + 4).attr('height', 24);
    svg.append('text').attr('class', 'label').attr('x', end + 8).attr('y', bottom + 21).text('refused');
  }
  axes(svg, x, y, { left, right: end, top, bottom: bottom + (lane ? 30 : 0), yText: time }, 'candidate, in the order recorded', 'time (logarithmic)');
  const said = [];
  const sayAt = (value, text) => {
    let at = y(value) + 4;
    for (const other of said) if (Math.abs(other - at) < 36) at = other + (at < other ? -36 : 36);
    said.push(at);
    svg.append('text').attr('class', 'label').attr('x', end + 8).attr('y', at).text(text);
    svg.append('text').attr('x', end + 8).attr('y', at + 15).text(time(value));
  };
  if (right.length) {
    let best = Infinity;
    const corners = all.filter(one => !refused(one)).map(one => [one.n, best = Math.min(best, one.median_us)]);
    corners.push([all.length + 0.6, best]);
    svg.append('path').attr('class', 'so-far').attr('d', line().x(d => x(d[0])).y(d => y(d[1])).curve(curveStepAfter)(corners));
    sayAt(best, 'best so far');
  }
  if (reference > 0) {
    svg.append('line').attr('class', 'reference').attr('x1', left).attr('x2', end).attr('y1', y(reference)).attr('y2', y(reference));
    sayAt(reference, 'reference');
  }
  const families = familiesOf(problem), of = one => colour(families.indexOf(one.family));
  svg.selectAll('.interval').data(right.filter(one => one.low_us > 0)).enter().append('line').attr('class', one => `interval ${of(one)}`)
    .attr('x1', one => x(one.n)).attr('x2', one => x(one.n)).attr('y1', one => y(one.low_us)).attr('y2', one => y(one.high_us));
  const radius = all.length > 150 ? 4 : 6;
  const cross = (cx, cy, r) => `M${cx - r},${cy - r}L${cx + r},${cy + r}M${cx - r},${cy + r}L${cx + r},${cy - r}`;
  const circle = (cx, cy, r) => `M${cx - r},${cy}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`;
  const marks = svg.selectAll('.mark').data(all).enter().append('path')
    .attr('class', one => `mark ${refused(one) ? 'refused' : `${of(one)} ${one.stage}`}`)
    .attr('stroke-width', one => (refused(one) ? 2.5 : null))
    .attr('d', one => (refused(one) ? cross(x(one.n), bottom + 16, 5) : circle(x(one.n), y(one.median_us), radius + (one.stage === 'promoted' ? 2 : 0))));
  answering(marks, problem, one => one, all.findIndex(one => one.schedule === problem.best?.schedule));
  caption(figure, 'Time over search', 'Each candidate with the interval of its median. Ringed: judged whole in a fresh process. Point at one for its schedule, click it for all that is known.');
  legend(figure, [...families.map((family, i) => [family, `--c${i % 6}`]), ['best so far', '--good', 'far'],
    ...(reference > 0 ? [[`reference: ${problem.runs.at(-1)?.reference || 'none'}`, '--c1', 'ref']] : []), ...(lane ? [['refused', '--bad']] : [])]);
}

// From where the best came: its ancestors in green, beside them what else was tried of each.
function drawLineage(figure, problem) {
  const all = problem.candidates, by = new Map(all.map(one => [one.schedule, one])), best = problem.best && by.get(problem.best.schedule);
  if (!best) return;
  const depth = new Map(), parentsOf = one => (one.parents ?? []).map(text => by.get(text)).filter(Boolean);
  const deep = (one, under = new Set()) => {
    if (depth.has(one) || under.has(one)) return depth.get(one) ?? 0;
    under.add(one);
    depth.set(one, Math.max(-1, ...parentsOf(one).map(parent => deep(parent, under))) + 1);
    return depth.get(one);
  };
  deep(best);
  const main = [...depth.keys()], kShown = 4, nodes = [], links = [], columns = [];
  const place = (one, column, css, from, label) => {
    const row = columns[column] = (columns[column] ?? -1) + 1;
    const node = { one, column, row, css, label };
    nodes.push(node);
    if (from) links.push({ source: from, target: node, css });
    return node;
  };
  const placed = new Map();
  for (const one of main.sort((a, b) => depth.get(a) - depth.get(b))) {
    const parents = parentsOf(one), node = place(one, depth.get(one), 'main', null, changes(one, parents[0]));
    placed.set(one, node);
    for (const parent of parents) if (placed.has(parent)) links.push({ source: placed.get(parent), target: node, css: 'main' });
  }
  for (const one of main) {
    const tried = all.filter(other => (other.parents ?? []).includes(one.schedule) && !depth.has(other))
      .sort((a, b) => (refused(a) - refused(b)) || a.median_us - b.median_us);
    for (const other of tried.slice(0, kShown)) place(other, depth.get(one) + 1, refused(other) ? 'bad' : '', placed.get(one), changes(other, one));
    if (tried.length > kShown) place(null, depth.get(one) + 1, 'more', placed.get(one), [`${tried.length - kShown} more tried`]);
  }
  figure.hidden = false;
  caption(figure, 'Lineage of the best', main.length > 1 ? 'From left to right, what became of what: the green line leads to the best, the others were tried beside it. Each says what it changed.'
    : 'The best came from no other candidate: it was proposed as it is.');
  const wide = 214, high = 62, gap = 74, width = columns.length * (wide + gap) - gap + 8, height = (Math.max(...columns) + 1) * (high + 12) + 4;
  const svg = svgIn(figure, width, height, 'lineage of the best candidate').attr('width', width).attr('height', height);
  const left = node => 4 + node.column * (wide + gap), top = node => 4 + node.row * (high + 12);
  const path = linkHorizontal().source(d => [left(d.source) + wide, top(d.source) + high / 2]).target(d => [left(d.target), top(d.target) + high / 2]);
  svg.selectAll('.link').data(links).enter().append('path').attr('class', d => `link ${d.css}`).attr('d', path);
  const clip = text => (text.length > 32 ? `${text.slice(0, 31)}…` : text);
  const boxes = svg.selectAll('.node').data(nodes.filter(node => node.one)).enter().append('g').attr('class', d => `node ${d.css}`)
    .attr('transform', d => `translate(${left(d)},${top(d)})`);
  boxes.append('rect').attr('width', wide).attr('height', high);
  boxes.append('text').attr('class', 't').attr('x', 12).attr('y', 20).text(d => `#${d.one.n}  ${refused(d.one) ? d.one.error_code : time(d.one.median_us)}${d.one === best ? '  best' : ''}`);
  boxes.append('text').attr('class', 'd').attr('x', 12).attr('y', 37).text(d => clip(d.label[0] ?? d.one.family));
  boxes.append('text').attr('class', 'd').attr('x', 12).attr('y', 53).text(d => clip(d.label.slice(1).join(', ')));
  answering(boxes, problem, d => d.one, main.length - 1);
  const more = svg.selectAll('.rest').data(nodes.filter(node => !node.one)).enter().append('text').attr('class', 'label rest');
  more.attr('x', d => left(d) + 12).attr('y', d => top(d) + high / 2 + 4).text(d => d.label[0]);
}

// Errors of the best by input family: how far below what is allowed.
function drawErrors(box, problem) {
  const seen = (problem.best?.verdict?.evidence ?? []).filter(one => number(one.error) > 0);
  if (!seen.length) return;
  const figure = element('figure', undefined, { class: 'errors' }), row = 40, height = seen.length * row + 62;
  const svg = svgIn(figure, 560, height, 'error of the best by input family');
  const x = scaleLog(domain(seen.flatMap(one => [one.error, one.bound || one.error, one.reference_error > 0 ? one.reference_error : one.error])), [88, 530]);
  const ticks = x.ticks(4), some = ticks.length > 8 ? ticks.filter(v => /^[15]/.test(v.toExponential())) : ticks;
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - 54})`).call(axisBottom(x).tickValues(some).tickFormat(v => v.toExponential(0)));
  svg.append('text').attr('class', 'label').attr('x', 294).attr('y', height - 12).attr('text-anchor', 'middle').text('relative Frobenius error against FP64');
  const rows = svg.selectAll('.row').data(seen).enter().append('g').attr('transform', (d, i) => `translate(0,${i * row + 6})`);
  rows.append('text').attr('x', 0).attr('y', 19).text(d => d.family);
  rows.append('line').attr('class', 'frame').attr('x1', 88).attr('x2', 530).attr('y1', 15).attr('y2', 15);
  rows.append('line').attr('class', 'interval c0').attr('x1', 88).attr('x2', d => x(d.error)).attr('y1', 15).attr('y2', 15).style('stroke-width', 8);
  rows.filter(d => d.reference_error > 0).append('circle').attr('class', 'hollow').attr('cx', d => x(d.reference_error)).attr('cy', 15).attr('r', 5);
  rows.append('circle').attr('class', 'c0').attr('cx', d => x(d.error)).attr('cy', 15).attr('r', 6);
  rows.filter(d => d.bound > 0).append('line').attr('class', 'bound').attr('x1', d => x(d.bound)).attr('x2', d => x(d.bound)).attr('y1', 4).attr('y2', 26);
  caption(figure, 'How right the best is, by input family', 'The further from the red line, which is what the precision track allows, the better.');
  legend(figure, [['the best', '--c0'], ['the reference', '--c1'], ['allowed', '--bad']]);
  box.prepend(figure);
}

// Achieved rate over arithmetic intensity, below the roofs; candidates pale, the best of each region full, references hollow.
function drawRoofline(figure) {
  const { gbs, tflops } = data.roofs, ridge = tflops * 1e3 / gbs, regions = data.regions.filter(region => region.intensity > 0);
  const points = [], late = [];
  for (const region of regions) {
    const hue = colour(regions.indexOf(region)), rate = us => region.operations / us / 1e6, problem = data.problems.find(one => one.problem.key === region.key);
    for (const one of problem?.candidates ?? [])
      if (!refused(one)) points.push({ x: region.intensity, y: rate(one.median_us), css: `faint ${hue}`, one, problem });
    if (region.reference_us > 0) late.push({ x: region.intensity, y: rate(region.reference_us), css: 'hollow', text: `${region.reference}: ${time(region.reference_us)}` });
    if (region.best_us > 0) points.push({ x: region.intensity, y: rate(region.best_us), css: `promoted ${hue}`, region, text: `${region.name}: ${time(region.best_us)}\n${digits(rate(region.best_us))} TFLOP/s, ${digits(region.bytes / region.best_us / 1e3)} GB/s\n${(100 * region.part).toFixed(0)} % of its roofline` });
  }
  points.push(...late);
  if (!points.length) return;
  const [low, high] = domain([...points.map(point => point.x), ridge], 0.3);
  const x = scaleLog([Math.min(low, ridge / 4), Math.max(high, ridge * 4)], [66, 870]);
  const roof = at => Math.min(tflops, at * gbs / 1e3);
  const y = scaleLog(domain([...points.map(point => point.y), tflops * 1.6, roof(x.domain()[0])]), [360, 26]);
  const svg = svgIn(figure, 900, 412, 'achieved rate over arithmetic intensity');
  axes(svg, x, y, { left: 66, right: 870, top: 26, bottom: 360, across: true }, 'arithmetic intensity, operations a byte (logarithmic)', 'TFLOP/s (logarithmic)');
  svg.append('path').attr('class', 'roof').attr('d', line().x(d => x(d[0])).y(d => y(d[1]))([[x.domain()[0], roof(x.domain()[0])], [ridge, tflops], [x.domain()[1], tflops]]));
  svg.append('text').attr('x', 866).attr('y', y(tflops) - 9).attr('text-anchor', 'end').text(`arithmetic: ${digits(tflops)} TFLOP/s`);
  const middle = Math.sqrt(x.domain()[0] * ridge), tilt = Math.atan2(y(roof(middle)) - y(roof(middle * 1.5)), x(middle * 1.5) - x(middle)) * -180 / Math.PI;
  svg.append('text').attr('transform', `translate(${x(middle)},${y(roof(middle)) - 10}) rotate(${tilt})`).attr('text-anchor', 'middle').text(`memory: ${digits(gbs)} GB/s`);
  const marks = svg.selectAll('.mark').data(points).enter().append('circle').attr('class', d => `mark ${d.css}`)
    .attr('cx', d => x(d.x)).attr('cy', d => y(d.y)).attr('r', d => (d.one ? 5 : 8));
  answering(marks.filter(d => d.one), null, d => d.one, 0);
  marks.each(function (d) {
    if (d.one) this.addEventListener('click', () => showPanel(d.problem, d.one), true);
    else {
      this.addEventListener('pointermove', event => showTip(d.text, event, this));
      this.addEventListener('pointerleave', hideTip);
      select(this).attr('role', 'img').attr('aria-label', d.text);
    }
  });
  const named = points.filter(point => point.region).sort((a, b) => y(a.y) - y(b.y));
  named.reduce((above, point) => (point.at = Math.max(y(point.y) + 5, above + 16)), 0);
  const text = svg.selectAll('.named').data(named).enter().append('text').attr('class', 'label named');
  text.attr('x', d => x(d.x) + (x(d.x) > 640 ? -14 : 14)).attr('text-anchor', d => (x(d.x) > 640 ? 'end' : 'start')).attr('y', d => d.at).text(d => (named.length > 8 ? '' : d.region.name));
  caption(figure, 'Roofline', 'Full: the best of each region. Pale: its other candidates. Hollow: the reference. The roofs are the target’s memory and arithmetic rates; those of a CPU are bounds of the machine that wrote this page.');
}

// ---------------------------------------------------------------- tables and sources

function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element('button', head.textContent, { type: 'button' });
    head.replaceChildren(button);
    if (body.rows[0]?.cells[column]?.classList.contains('n')) head.classList.add('n');
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending', key = row => {
        const cell = row.cells[column];
        return 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
      };
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const missing = row => row.cells[column].textContent === '–';
      const order = (a, b) => (missing(a) - missing(b)) || (down ? -1 : 1) * (typeof key(a) === 'number' && typeof key(b) === 'number' ? key(a) - key(b) : String(key(a)).localeCompare(String(key(b)), 'en', { numeric: true }));
      body.append(...[...body.rows].sort(order));
    });
  });
}

// Rows of the table of candidates open their details; a field above it filters, as does a click on a code of refusal.
function candidatesTable(section, problem) {
  const box = section.querySelector('.tablebox.candidates'), table = box?.querySelector('table');
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, i) => {
    const one = problem.candidates[i], button = element('button', String(one.n), { type: 'button', 'aria-label': `details of candidate ${one.n}` });
    row.dataset.i = i;
    row.classList.toggle('best', one.schedule === problem.best?.schedule);
    row.classList.toggle('refused', refused(one));
    row.cells[0].replaceChildren(button);
    row.addEventListener('click', () => showPanel(problem, one));
  });
  const field = element('input', undefined, { type: 'search', placeholder: 'block_m=128, candidate-wrong, promoted …' });
  const label = element('label', 'Show only '), shown = element('span', '', { role: 'status' }), line_ = element('div', undefined, { class: 'filter' });
  label.append(field);
  line_.append(label, shown);
  box.before(line_);
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = words.length ? `${count} of ${rows.length}` : '';
  };
  field.addEventListener('input', filter);
  for (const row of section.querySelector('.tablebox.refusals tbody')?.rows ?? []) {
    const code = row.cells[0].textContent, button = element('button', code, { type: 'button', 'aria-label': `show the candidates refused for ${code}` });
    row.cells[0].replaceChildren(button);
    button.addEventListener('click', () => { field.value = code; filter(); box.scrollIntoView({ block: 'center' }); });
  }
}

// Comments, texts, numbers and words of the language apart, once a source is opened.
const kToken = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|^#[^\n]*)|("(?:\\.|[^"\\\n])*")|\b(\d[\w.]*)\b|\b(alignas|auto|bool|char|const|constexpr|double|else|extern|float|for|if|inline|int|long|namespace|return|short|signed|sizeof|static|struct|template|typename|unsigned|using|void|while|program|grid|warps|global|shared|register|output|pipeline|roles|role|produce|consume|copy|mma|map|reduce|fill|loop|stages|__global__|__device__|__shared__|__launch_bounds__)\b/gm;
function highlight(pre) {
  const text = pre.textContent, out = [];
  let at = 0;
  for (const match of text.matchAll(kToken)) {
    const name = ['i', 's', 'u', 'b'][[1, 2, 3, 4].findIndex(i => match[i] !== undefined)];
    out.push(text.slice(at, match.index), element(name, match[0]));
    at = match.index + match[0].length;
  }
  pre.replaceChildren(...out, text.slice(at));
}

// ---------------------------------------------------------------- all of it

for (const section of document.querySelectorAll('.problem')) {
  const problem = data.problems[section.dataset.problem], figure = section.querySelector('figure.search');
  if (figure) drawSearch(figure, problem);
  drawLineage(section.querySelector('figure.lineage'), problem);
  drawErrors(section.querySelector('.pair'), problem);
  candidatesTable(section, problem);
}
const roofline = document.querySelector('figure.roofline');
if (roofline && data.roofs) drawRoofline(roofline);
document.querySelectorAll('.tablebox thead').forEach(head => sortable(head.parentNode));
for (const folded of document.querySelectorAll('details')) {
  const pre = folded.querySelector(':scope > pre.code');
  if (pre) folded.addEventListener('toggle', () => highlight(pre), { once: true });
}
if (document.querySelectorAll('details.kernel').length === 1) document.querySelector('details.kernel').open = true;
