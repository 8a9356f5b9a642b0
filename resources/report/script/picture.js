// What pictures share: a drawing as wide as there is room, axes, a caption, a legend.
import { axisBottom, axisLeft } from 'd3-axis';
import { select } from 'd3-selection';
import { element } from './dom.js';
import { digits, known } from './words.js';

const kLeastWidth = 260;
const kWidestTick = 64; // pixels that the label of a tick on x takes

// Draws now and whenever the figure's width has changed.
export function fitted(figure, draw) {
  let drawn = 0;
  const again = () => {
    const picture = figure.querySelector('.picture');
    const width = Math.max(kLeastWidth, Math.floor(picture.clientWidth));
    if (picture.clientWidth === 0 || width === drawn) return; // folded away, or as it was
    drawn = width;
    picture.classList.add('fitted');
    draw(width);
  };
  again();
  new ResizeObserver(again).observe(figure);
}

export function svgIn(box, width, height, label) {
  select(box).select('svg').remove();
  return select(box)
    .append('svg')
    .attr('viewBox', `0 0 ${width} ${height}`)
    .attr('width', width)
    .attr('height', height)
    .attr('role', 'group')
    .attr('aria-label', label);
}

function short(value) {
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e5 || size < 1e-2)) return value.toExponential(0);
  return digits(value);
}

// Of a logarithmic scale: 1, 2 and 5 of each power of ten; where these are too many, the powers.
const kRound = [/^[125](\.0*)?e/, /^1(\.0*)?e/];

// At most `count` of a scale's ticks, the round ones of a logarithmic one.
export function ticksOf(scale, count) {
  let all = scale.ticks(count);
  const logarithmic = 'base' in scale;
  for (const rounder of logarithmic ? kRound : []) {
    const round = all.filter(value => rounder.test(value.toExponential()));
    if (all.length > count && round.length > 2) all = round;
  }
  while (all.length > count) all = all.filter((value, i) => i % 2 === 0);
  return all;
}

// Axes around the frame {left, right, top, bottom}; with `across` a grid in both directions.
export function axes(svg, x, y, frame, labels) {
  const { left, right, top, bottom } = frame;
  const xs = ticksOf(x, Math.max(2, Math.floor((right - left) / kWidestTick)));
  const ys = ticksOf(y, 7);
  const lines = svg.append('g').attr('class', 'grid');
  for (const value of ys) {
    lines.append('line').attr('x1', left).attr('x2', right).attr('y1', y(value))
      .attr('y2', y(value));
  }
  for (const value of labels.across ? xs : []) {
    lines.append('line').attr('x1', x(value)).attr('x2', x(value)).attr('y1', top)
      .attr('y2', bottom);
  }
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${bottom})`)
    .call(axisBottom(x).tickValues(xs).tickFormat(short).tickSizeOuter(0));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`)
    .call(axisLeft(y).tickValues(ys).tickFormat(labels.yText ?? short).tickSizeOuter(0));
  svg.append('text').attr('class', 'label').attr('x', (left + right) / 2).attr('y', bottom + 40)
    .attr('text-anchor', 'middle').text(labels.x);
  svg.append('text').attr('class', 'label').attr('x', 4).attr('y', top - 10).text(labels.y);
}

// From the least to the largest of what is known, and some room.
export function domain(values, room = 0.06) {
  const there = values.filter(known);
  const low = Math.min(...there);
  const high = Math.max(...there);
  const factor = Math.max((high / low) ** room, 1.03);
  return [low / factor, high * factor];
}

export function caption(figure, title, text) {
  const made = element('figcaption', title);
  made.append(element('small', text));
  figure.querySelector('figcaption')?.remove();
  figure.prepend(made);
}

// Entries: {text, colour, line}.
export function legend(figure, entries) {
  figure.querySelector('.legend')?.remove();
  const box = element('div', undefined, { class: 'legend' });
  for (const { text, colour, line } of entries) {
    const style = `--of: var(${colour})`;
    box.append(element('span', text, { style, class: line ? 'line' : '' }));
  }
  figure.append(box);
}

export const colour = index => `c${index % 6}`;
