// Errors of the best by input family: how far below what is allowed.
import { axisBottom } from 'd3-axis';
import { scaleLog } from 'd3-scale';
import { element } from './dom.js';
import { caption, domain, fitted, legend, svgIn, ticksOf } from './picture.js';
import { positive } from './words.js';

const kRow = 44;
const kLeft = 14;

function draw(figure, seen, width) {
  const height = seen.length * kRow + 62;
  const right = width - 16;
  const svg = svgIn(figure.querySelector('.picture'), width, height,
    'error of the best by input family');
  const figures = seen.flatMap(one => [one.error, one.bound, one.reference_error].filter(positive));
  const x = scaleLog(domain(figures), [kLeft, right]);
  const format = value => value.toExponential(0);
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - 54})`)
    .call(axisBottom(x).tickValues(ticksOf(x, Math.floor(width / 70))).tickFormat(format));
  svg.append('text').attr('class', 'label').attr('x', (kLeft + right) / 2).attr('y', height - 12)
    .attr('text-anchor', 'middle').text('relative error against FP64');
  seen.forEach((one, i) => {
    const row = svg.append('g').attr('transform', `translate(0,${i * kRow + 6})`);
    row.append('text').attr('x', kLeft).attr('y', 10).text(one.family);
    row.append('line').attr('class', 'frame').attr('x1', kLeft).attr('x2', right).attr('y1', 25)
      .attr('y2', 25);
    row.append('line').attr('class', 'interval c0').attr('x1', kLeft).attr('x2', x(one.error))
      .attr('y1', 25).attr('y2', 25).style('stroke-width', 8);
    if (positive(one.reference_error)) {
      row.append('circle').attr('class', 'hollow').attr('cx', x(one.reference_error))
        .attr('cy', 25).attr('r', 5);
    }
    row.append('circle').attr('class', 'c0').attr('cx', x(one.error)).attr('cy', 25).attr('r', 6);
    if (positive(one.bound)) {
      row.append('line').attr('class', 'bound').attr('x1', x(one.bound)).attr('x2', x(one.bound))
        .attr('y1', 15).attr('y2', 35);
    }
  });
}

export function drawErrors(box, problem) {
  const evidence = problem.best?.verdict?.evidence ?? [];
  const seen = evidence.filter(one => positive(one.error));
  if (!seen.length) return;
  const figure = element('figure', undefined, { class: 'errors' });
  figure.append(element('div', undefined, { class: 'picture' }));
  caption(figure, 'How right the best is, by input family',
    'The further from the red line, which is what the precision track allows, the better.');
  const entries = [{ text: 'the best', colour: '--c0' }];
  if (seen.some(one => positive(one.reference_error))) {
    entries.push({ text: 'the reference', colour: '--c1' });
  }
  if (seen.some(one => positive(one.bound))) entries.push({ text: 'allowed', colour: '--bad' });
  legend(figure, entries);
  box.prepend(figure);
  fitted(figure, width => draw(figure, seen, width));
}
