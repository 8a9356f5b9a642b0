// Comments, texts, numbers and words of the language apart, once a source is opened.
import { element } from './dom.js';

const kWords = [
  'alignas auto bool char const constexpr double else extern float for if inline int long',
  'namespace return short signed sizeof static struct template typename unsigned using void while',
  'program grid warps global shared register output pipeline roles role produce consume copy mma',
  'map reduce fill loop stages __global__ __device__ __shared__ __launch_bounds__',
].join(' ').split(' ');

const kParts = [
  String.raw`(\/\/[^\n]*|\/\*[\s\S]*?\*\/|^#[^\n]*)`, // comments and directives
  String.raw`("(?:\\.|[^"\\\n])*")`, // texts
  String.raw`\b(\d[\w.]*)\b`, // numbers
  String.raw`\b(${kWords.join('|')})\b`,
];
const kToken = new RegExp(kParts.join('|'), 'gm');
const kElements = ['i', 's', 'u', 'b']; // of each part, as style/parts.css colours them

function highlight(pre) {
  const text = pre.textContent;
  const out = [];
  let at = 0;
  for (const match of text.matchAll(kToken)) {
    const part = kElements.findIndex((name, i) => match[i + 1] !== undefined);
    out.push(text.slice(at, match.index), element(kElements[part], match[0]));
    at = match.index + match[0].length;
  }
  pre.replaceChildren(...out, text.slice(at));
}

export function highlightWhenOpened(folded) {
  const pre = folded.querySelector(':scope > pre.code');
  if (pre) folded.addEventListener('toggle', () => highlight(pre), { once: true });
}
