/*! Pictures are drawn with parts of D3 (d3-scale, d3-shape, d3-axis, d3-selection and what they
use). Copyright 2010-2019 Mike Bostock. All rights reserved. Redistribution and use in source and
binary forms, with or without modification, are permitted provided that the following conditions
are met: Redistributions of source code must retain the above copyright notice, this list of
conditions and the following disclaimer. Redistributions in binary form must reproduce the above
copyright notice, this list of conditions and the following disclaimer in the documentation and/or
other materials provided with the distribution. Neither the name of the author nor the names of
contributors may be used to endorse or promote products derived from this software without
specific prior written permission. THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND
CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO
EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER
CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING
NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF
THE POSSIBILITY OF SUCH DAMAGE. */

// The page reads without this script. With it plain pictures become ones that answer to pointer and
// keyboard and fit the width there is, tables sort and filter, and every candidate shows its
// details. esbuild makes one text of this file, script/ and the parts of D3.
import { drawErrors } from './script/errors.js';
import { showLineage } from './script/lineage.js';
import { fitted } from './script/picture.js';
import { drawRoofline } from './script/roofline.js';
import { drawSearch } from './script/search.js';
import { highlightWhenOpened } from './script/sources.js';
import { candidatesTable, sortable } from './script/tables.js';

const data = JSON.parse(document.getElementById('data').textContent);

for (const section of document.querySelectorAll('.problem')) {
  const problem = data.problems[section.dataset.problem];
  const figure = section.querySelector('figure.search');
  if (figure) fitted(figure, width => drawSearch(figure, problem, width));
  showLineage(section.querySelector('.lineage'), problem);
  drawErrors(section.querySelector('.pair'), problem);
  candidatesTable(section, problem);
}

const roofline = document.querySelector('figure.roofline');
if (roofline && data.roofs) fitted(roofline, width => drawRoofline(roofline, data, width));

document.querySelectorAll('.tablebox thead').forEach(head => sortable(head.parentNode));
document.querySelectorAll('details').forEach(highlightWhenOpened);

const kernels = document.querySelectorAll('details.kernel');
if (kernels.length === 1) kernels[0].open = true;
