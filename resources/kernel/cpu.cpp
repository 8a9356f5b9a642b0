#define WL_VECTOR_BYTES {{vector_bytes}}
#include "wl_cpu.h"

// One call computes one of the {{x}} × {{y}} × {{z}} blocks.
extern "C" void {{name}}([[maybe_unused]] void* const* buffers, [[maybe_unused]] long long task,{{!
}} [[maybe_unused]] void* scratch) {
{{#buffers}}  {{type}}* {{name}} = static_cast<{{type}}*>(buffers[{{number}}]);
{{/buffers}}{{#arrays}}  {{#floats}}alignas(64) {{type}} {{name}}[{{floats}}];{{/floats}}{{!
}}{{^floats}}{{type}}* {{name}} = {{!
}}reinterpret_cast<{{type}}*>(static_cast<float*>(scratch) + {{offset}});{{/floats}}
{{/arrays}}  [[maybe_unused]] const long block_x = task % {{x}};
  [[maybe_unused]] const long block_y = task / {{x}} % {{y}};
  [[maybe_unused]] const long block_z = task / {{plane}};
{{body}}{{#streams}}  wl::stream_end();
{{/streams}}}
