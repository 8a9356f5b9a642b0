// Best against time: every candidate when it was found, with the interval of its median; the best
// so far as steps; the reference; refused ones in a lane of their own.
import { scaleLinear, scaleLog } from 'd3-scale';
import { curveStepAfter, line } from 'd3-shape';
import { answering } from './dom.js';
import { axes, caption, colour, domain, legend, svgIn } from './picture.js';
import { known, positive, refused, time } from './words.js';

const kManyCandidates = 150;

function cross(x, y, r) {
  return `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}`;
}

function circle(x, y, r) {
  return `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`;
}

function bestSoFar(candidates, when, end) {
  let best = Infinity;
  const corners = candidates.map(one => {
    best = Math.min(best, one.median_us);
    return [when(one), best];
  });
  corners.push([end, best]);
  return corners;
}

function caps(svg, x, one, y, css) {
  for (const end of [one.low_us, one.high_us]) {
    svg.append('line').attr('class', css).attr('x1', x - 4).attr('x2', x + 4)
      .attr('y1', y(end)).attr('y2', y(end));
  }
}

export function drawSearch(figure, problem, width) {
  const all = problem.candidates;
  const right = all.filter(one => !refused(one));
  const inSeconds = all.every(one => known(one.seconds));
  const when = inSeconds ? one => one.seconds : one => one.n;
  const hasLane = all.length > right.length;
  const reference = positive(problem.reference_us) ? [problem.reference_us] : [];
  const frame = { left: 70, right: width - 10, top: 30, bottom: hasLane ? 300 : 330 };
  const height = hasLane ? 392 : 382;
  const svg = svgIn(figure.querySelector('.picture'), width, height,
    'time of the kernels over the search');
  const end = Math.max(...all.map(when), inSeconds ? 0 : 1);
  const x = scaleLinear([0, end * 1.03 || 1], [frame.left, frame.right]);
  const times = right.flatMap(one => [one.median_us, one.low_us, one.high_us]).filter(positive);
  const shown = [...times, ...reference];
  const y = scaleLog(domain(shown.length ? shown : [1]), [frame.bottom, frame.top]);
  if (hasLane) {
    svg.append('rect').attr('class', 'lane').attr('x', frame.left).attr('y', frame.bottom + 4)
      .attr('width', frame.right - frame.left).attr('height', 24);
    svg.append('text').attr('class', 'label').attr('x', frame.left - 8)
      .attr('y', frame.bottom + 21).attr('text-anchor', 'end').text('refused');
  }
  const lane = hasLane ? 30 : 0;
  axes(svg, x, y, { ...frame, bottom: frame.bottom + lane }, {
    x: inSeconds ? 'seconds of search' : 'candidate, in the order recorded',
    y: 'time of the kernels (logarithmic)',
    yText: time,
  });
  if (right.length) {
    const steps = line().x(d => x(d[0])).y(d => y(d[1])).curve(curveStepAfter);
    svg.append('path').attr('class', 'so-far').attr('d', steps(bestSoFar(right, when, end)));
  }
  for (const us of reference) {
    svg.append('line').attr('class', 'reference').attr('x1', frame.left).attr('x2', frame.right)
      .attr('y1', y(us)).attr('y2', y(us));
  }
  const families = [...new Set(all.map(one => one.family))];
  const of = one => colour(families.indexOf(one.family));
  for (const one of right) {
    if (!positive(one.low_us) || !positive(one.high_us)) continue;
    const css = `interval ${of(one)}`;
    svg.append('line').attr('class', css).attr('x1', x(when(one))).attr('x2', x(when(one)))
      .attr('y1', y(one.low_us)).attr('y2', y(one.high_us));
    if (all.length <= kManyCandidates) caps(svg, x(when(one)), one, y, css);
  }
  const radius = all.length > kManyCandidates ? 4 : 6;
  const nodes = all.map(one => {
    const at = x(when(one));
    const promoted = one.stage === 'promoted' ? 2 : 0;
    const path = svg.append('path').attr('data-n', one.n);
    if (refused(one)) {
      path.attr('class', 'mark refused').attr('stroke-width', 2.5)
        .attr('d', cross(at, frame.bottom + 16, 5));
    } else {
      path.attr('class', `mark ${of(one)} ${one.stage}`)
        .attr('d', circle(at, y(one.median_us), radius + promoted));
    }
    return path.node();
  });
  const best = all.findIndex(one => one.schedule === problem.best?.schedule);
  answering(nodes, problem, all, best);
  caption(figure, 'Best against time',
    'Each candidate when it was found, with the interval of its median. Ringed: judged whole in a '
    + 'fresh process. Point at one for its schedule, click it for all that is known.');
  const bestTime = right.length ? Math.min(...right.map(one => one.median_us)) : null;
  const entries = families.map((family, i) => ({ text: family, colour: `--c${i % 6}` }));
  if (bestTime) {
    entries.push({ text: `best so far: ${time(bestTime)}`, colour: '--good', line: true });
  }
  for (const us of reference) {
    const text = `reference: ${problem.reference || 'plain'} ${time(us)}`;
    entries.push({ text, colour: '--c1', line: true });
  }
  if (hasLane) entries.push({ text: 'refused', colour: '--bad' });
  legend(figure, entries);
}
