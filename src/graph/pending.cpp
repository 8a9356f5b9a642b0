// Pending.
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
Result<Outputs> grid_sample(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> affine_grid(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> roi_align(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> deform_conv(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> col2im(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> center_crop_pad(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> dft(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> stft(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> cosine_window(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> mel_weights(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> bit_shift(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> bit_cast(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> determinant(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
Result<Outputs> max_pool_places(PrimitiveWriter& writer) {
  return writer.error(kAttribute, "operator is not supported yet");
}
}  // namespace warploom::graph::rewrites
