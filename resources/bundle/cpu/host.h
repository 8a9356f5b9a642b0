{{comment}}//
// Every tensor is packed, row-major, and aligned to 64 bytes; 16- and 8-bit floats are passed by
// their bits:
{{#inputs}}//   {{variable}}: input{{#renamed}} {{called}}{{/renamed}}, {{text}}
{{/inputs}}{{#outputs}}//   {{variable}}: output{{#renamed}} {{called}}{{/renamed}}, {{text}}
{{/outputs}}#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Bytes of memory that {{bundle}}_run needs as its workspace; 0: none, and it may be null.
std::size_t {{bundle}}_workspace_bytes(void);

// Computes on all cores and returns when the outputs are written. The workspace is aligned to 64
// bytes. Returns 0, or 1 where a workspace is needed and null was given, or 2 when there is no
// memory to be had. Calls take turns.
{{#prepares}}//
// Before the first call, and again once a constant input has changed: {{bundle}}_prepare with the
// same workspace, which then holds {{prepared_bytes}} bytes that every call reads. Nothing else may
// write it in between, and no two calls may share it at the same time.
// Constant inputs: {{constant_names}}.
{{/prepares}}int {{bundle}}_run(
{{#inputs}}    const {{type}}* {{variable}},
{{/inputs}}{{#outputs}}    {{type}}* {{variable}},
{{/outputs}}    void* workspace);

{{#prepares}}int {{bundle}}_prepare(
{{#inputs}}{{#constant}}    const {{type}}* {{variable}},
{{/constant}}{{/inputs}}    void* workspace);

{{/prepares}}// The same, with the tensors as an array: inputs, then outputs.
int {{bundle}}_run_array(void* const* tensors, void* workspace);
{{#prepares}}int {{bundle}}_prepare_array(void* const* tensors, void* workspace);
{{/prepares}}}  // extern "C"
