// Figures and candidates in words. What is not known is null, and a dash on the page.

const kDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

export const known = value => typeof value === 'number' && isFinite(value);
export const positive = value => known(value) && value > 0;

export function digits(value) {
  if (!known(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return kDigits.format(value);
}

export function time(us) {
  if (!positive(us)) return '–';
  if (us < 1e3) return `${digits(us)} µs`;
  if (us < 1e6) return `${digits(us / 1e3)} ms`;
  return `${digits(us / 1e6)} s`;
}

export function seconds(value) {
  if (!known(value)) return '–';
  return value < 120 ? `${digits(value)} s` : `${digits(value / 60)} min`;
}

export const percent = share => `${(100 * share).toFixed(0)} %`;

// "812 µs ±4 %", "812 µs" where no interval is known.
export function timeAndSpread(one) {
  const spread = known(one.spread) ? ` ±${percent(one.spread)}` : '';
  return time(one.median_us) + spread;
}

export const refused = one => one.stage === 'refused' || !positive(one.median_us);
export const fields = one => one.fields?.fields ?? {};
export const why = one => one.verdict?.refused ?? {};

// What tells a schedule from the one it came from: "block_m 64→128".
export function changes(one, parent) {
  if (!parent) return [];
  const before = fields(parent);
  const after = fields(one);
  const out = one.family === parent.family ? [] : [`${parent.family}→${one.family}`];
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[key] !== after[key]) out.push(`${key} ${before[key] ?? '–'}→${after[key] ?? '–'}`);
  }
  return out;
}

// A candidate in three lines.
export function summary(one) {
  const when = known(one.seconds) ? `, after ${seconds(one.seconds)}` : '';
  const said = refused(one)
    ? `refused: ${one.error_code || 'not timed'}\n${why(one).message ?? ''}`
    : `${timeAndSpread(one)}\nerror ${digits(one.error)}`;
  return `#${one.n}${when}  ${one.schedule}\n${said}`;
}
