// {{name}}: {{grid}} blocks of {{threads}} threads{{#cluster}} in clusters of {{blocks}}{{/cluster}}, {{shared_bytes}} bytes of shared memory a block, for {{arch}}.
{{#packed}}// {{name}}, {{type}} {{shape}}, is packed once before the launch: dimension by dimension (extent:stride) of a coordinate's digits, lowest first, {{layout}}.
{{/packed}}#include "wl.h"

WL_KERNEL{{#cluster}}_CLUSTER{{/cluster}}({{name}}, {{threads}}, 1{{#cluster}}, {{extents}}{{/cluster}})({{params}}) {
  const unsigned smem = WL_SHARED_BASE();
{{#tensors}}  const unsigned {{name}} = smem + {{offset}};  // {{type}} {{shape}}{{#slots}}, {{count}} slots of {{bytes}} bytes{{/slots}}: {{layout}}
{{/tensors}}{{#pipelines}}  const unsigned {{name}}_full = smem + {{full}}, {{name}}_empty = smem + {{empty}};
{{/pipelines}}{{#places}}  const int {{name}} = wl::{{name}}();
{{/places}}{{body}}}
WL_EXPORT({{name}})
