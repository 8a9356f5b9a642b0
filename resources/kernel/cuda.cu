// {{name}}: {{grid}} blocks of {{threads}} threads{{!
}}{{#cluster}} in clusters of {{blocks}}{{/cluster}}{{!
}}, {{shared_bytes}} bytes of shared memory a block, for {{arch}}.
{{#packed}}// {{name}}, {{type}} {{shape}}, is packed once before the launch:{{!
}} dimension by dimension (extent:stride) of a coordinate's digits, lowest first, {{layout}}.
{{/packed}}#include "wl.h"

WL_KERNEL{{#cluster}}_CLUSTER{{/cluster}}({{name}}, {{threads}}, {{resident}}{{!
}}{{#cluster}}, {{extents}}{{/cluster}})({{params}}) {
  const unsigned smem = WL_SHARED_BASE();
{{#tensors}}  const unsigned {{name}} = smem + {{offset}};  // {{type}} {{shape}}{{!
}}{{#stages}}, {{count}} stages of {{bytes}} bytes{{/stages}}: {{layout}}
{{/tensors}}{{#pipelines}}  const unsigned {{name}}_full = smem + {{full}},{{!
}} {{name}}_empty = smem + {{empty}};
{{/pipelines}}{{#places}}  const int {{name}} = wl::{{name}}();
{{/places}}{{#meetings}}  const unsigned met = smem + {{first}};{{!
}}  // two barriers, which the rounds of cluster reductions take by turns
  int meeting = 0;
{{/meetings}}{{#barriers}}  if (wl::thread() == 0) {
{{#meetings}}    wl::mbarrier_init(met + 0, 1);
    wl::mbarrier_init(met + {{second}}, 1);
{{/meetings}}{{#pipelines}}    for (int stage = 0; stage < {{stages}}; ++stage) {
      wl::mbarrier_init({{name}}_full + 8 * stage, 1);
{{#handed_back}}      wl::mbarrier_init({{name}}_empty + 8 * stage, {{arrivals}});
{{/handed_back}}    }
{{/pipelines}}    wl::fence_mbarrier_init();
  }
{{/barriers}}{{#cluster}}  wl::cluster_sync();  // every block of the cluster has started
{{/cluster}}{{#apart}}  wl::sync_threads();
{{/apart}}{{#early}}  wl::griddepcontrol_wait();{{!
}}  // so far while the kernel before this one was ending
{{#passing}}  wl::griddepcontrol_launch_dependents();  // the next one may be set up
{{/passing}}{{/early}}{{body}}{{#together}}{{!
}}  wl::cluster_sync();  // no block ends while others may still reach into it
{{/together}}}
WL_EXPORT({{name}})
