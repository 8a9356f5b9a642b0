{{comment}}// {{bundle}}_host.cpp launches what is here; `make check` compares it with stored
// results.

{{kernel_text}}{{#gpu}}
// What the launcher knows the kernels by.
{{#kernels}}extern "C" const void* {{bundle}}_kernel_{{index}}() {
  return reinterpret_cast<const void*>(&{{part}}{{symbol}});
}
{{/kernels}}{{/gpu}}