// Achieved rate over arithmetic intensity, below the roofs of arithmetic and DRAM; candidates pale,
// the best of each region full, references hollow.
import { scaleLog } from 'd3-scale';
import { line } from 'd3-shape';
import { answering, hideTip, showTip } from './dom.js';
import { axes, caption, colour, domain, svgIn } from './picture.js';
import { digits, percent, positive, refused, time } from './words.js';

const kLabelRoom = 240; // pixels of a region's name
const kMostNamed = 8;

// {x, y, css} and what each stands for: a candidate, or a text.
function pointsOf(data) {
  const points = [];
  const late = [];
  const regions = data.regions.filter(region => positive(region.intensity));
  regions.forEach((region, i) => {
    const rate = us => region.operations / us / 1e6;
    const x = region.intensity;
    const problem = data.problems.find(one => one.problem.key === region.key);
    for (const one of problem?.candidates ?? []) {
      if (refused(one)) continue;
      points.push({ x, y: rate(one.median_us), css: `faint ${colour(i)}`, one, problem });
    }
    if (positive(region.reference_us)) {
      const text = `${region.reference}: ${time(region.reference_us)}`;
      late.push({ x, y: rate(region.reference_us), css: 'hollow', text });
    }
    if (!positive(region.best_us)) return;
    const part = positive(region.part) && region.part <= 1
      ? `${percent(region.part)} of its bound (${region.bound})`
      : `bound by ${region.bound ?? 'nothing known'}`;
    const rates = `${digits(rate(region.best_us))} TFLOP/s, ${digits(region.gbs)} GB/s`;
    points.push({
      x,
      y: rate(region.best_us),
      css: `promoted ${colour(i)}`,
      region,
      text: `${region.name}: ${time(region.best_us)}\n${rates}\n${part}`,
    });
  });
  return [...points, ...late];
}

function drawRoofs(svg, x, y, roofs, frame) {
  const { gbs, tflops } = roofs;
  const ridge = tflops * 1e3 / gbs;
  const roof = at => Math.min(tflops, at * gbs / 1e3);
  const [low, high] = x.domain();
  const path = line().x(d => x(d[0])).y(d => y(d[1]));
  svg.append('path').attr('class', 'roof')
    .attr('d', path([[low, roof(low)], [ridge, tflops], [high, tflops]]));
  svg.append('text').attr('x', frame.right - 4).attr('y', y(tflops) - 9)
    .attr('text-anchor', 'end').text(`arithmetic: ${digits(tflops)} TFLOP/s`);
  const middle = Math.sqrt(low * ridge);
  const rise = y(roof(middle)) - y(roof(middle * 1.5));
  const tilt = Math.atan2(rise, x(middle * 1.5) - x(middle)) * -180 / Math.PI;
  svg.append('text').attr('text-anchor', 'middle').text(`DRAM: ${digits(gbs)} GB/s`)
    .attr('transform', `translate(${x(middle)},${y(roof(middle)) - 10}) rotate(${tilt})`);
}

// Names of regions beside their marks, moved down where they would lie on each other.
function nameRegions(svg, x, y, points, width) {
  const named = points.filter(point => point.region).sort((a, b) => y(a.y) - y(b.y));
  if (named.length > kMostNamed || width < 2 * kLabelRoom) return;
  let above = 0;
  for (const point of named) {
    above = Math.max(y(point.y) + 5, above + 16);
    const onTheLeft = x(point.x) > width - kLabelRoom;
    svg.append('text').attr('class', 'label named').text(point.region.name)
      .attr('x', x(point.x) + (onTheLeft ? -14 : 14)).attr('y', above)
      .attr('text-anchor', onTheLeft ? 'end' : 'start');
  }
}

function answerWithText(node, text) {
  node.addEventListener('pointermove', event => showTip(text, event, node));
  node.addEventListener('pointerleave', hideTip);
  node.setAttribute('role', 'img');
  node.setAttribute('aria-label', text);
}

export function drawRoofline(figure, data, width) {
  const points = pointsOf(data);
  if (!points.length) return;
  const { gbs, tflops } = data.roofs;
  const ridge = tflops * 1e3 / gbs;
  const frame = { left: 62, right: width - 12, top: 30, bottom: 360 };
  const [low, high] = domain([...points.map(point => point.x), ridge], 0.3);
  const ends = [Math.min(low, ridge / 4), Math.max(high, ridge * 4)];
  const x = scaleLog(ends, [frame.left, frame.right]);
  const least = Math.min(tflops, ends[0] * gbs / 1e3);
  const rates = [...points.map(point => point.y), tflops * 1.6, least];
  const y = scaleLog(domain(rates), [frame.bottom, frame.top]);
  const svg = svgIn(figure.querySelector('.picture'), width, 412,
    'achieved rate over arithmetic intensity');
  axes(svg, x, y, frame, {
    x: 'operations a byte (logarithmic)',
    y: 'TFLOP/s (logarithmic)',
    across: true,
  });
  drawRoofs(svg, x, y, data.roofs, frame);
  const nodes = points.map(point => svg.append('circle').attr('class', `mark ${point.css}`)
    .attr('cx', x(point.x)).attr('cy', y(point.y)).attr('r', point.one ? 5 : 8).node());
  for (const problem of new Set(points.map(point => point.problem).filter(Boolean))) {
    const of = points.map((point, i) => i).filter(i => points[i].problem === problem);
    answering(of.map(i => nodes[i]), problem, of.map(i => points[i].one));
  }
  points.forEach((point, i) => {
    if (!point.one) answerWithText(nodes[i], point.text);
  });
  nameRegions(svg, x, y, points, width);
  caption(figure, 'Roofline',
    'Full: the best of each region. Pale: its other candidates. Hollow: the reference. Bytes are '
    + 'inputs and outputs once. The slope is what DRAM serves, the flat roof what arithmetic '
    + `allows, by datasheet${data.roofs.card ? ` of ${data.roofs.card}` : ''}; data that stay in `
    + 'a cache may stand above the slope. Of a CPU the '
    + 'roofs are bounds of the machine that wrote '
    + 'this page.');
}
