#include "tile/build.h"
namespace warploom::tile {
TensorId Builder::declare(Tensor tensor) {
  program_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program_.tensors.size()) - 1;
}
TensorId Builder::global(std::string name, Dtype dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  if (strides.empty()) strides = dense_strides(shape);
  return declare({std::move(name), dtype, Scope::global, std::move(shape), std::move(strides)});
}
TensorId Builder::output(std::string name, Dtype dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  const TensorId id = global(std::move(name), dtype, std::move(shape), std::move(strides));
  program_.tensors.back().writable = true;
  return id;
}
TensorId Builder::zeroed(TensorId output) {
  program_.tensors[static_cast<std::size_t>(output)].zeroed = true;
  return output;
}

PipelineId Builder::pipeline(std::string name, int stages, std::vector<TensorId> tensors) {
  const auto id = static_cast<PipelineId>(program_.pipelines.size());
  for (const TensorId tensor : tensors)
    if (tensor >= 0 && static_cast<std::size_t>(tensor) < program_.tensors.size())
      program_.tensors[static_cast<std::size_t>(tensor)].pipeline = id;
  program_.pipelines.push_back({std::move(name), stages, std::move(tensors)});
  return id;
}

void Builder::roles(const std::function<void()>& body, Where where) {
  add(Roles{}, where);
  body();
}
// Belongs to the roles just opened; a role inside a role opens others, which verify() refuses.
void Builder::role(std::string name, int warps, int registers, const std::function<void()>& body) {
  Role declared{std::move(name), warps, registers, nested(body)};
  Body& around = open_.empty() ? program_.body : *open_.back();
  Roles* opened = around.empty() ? nullptr : std::get_if<Roles>(&around.back().node);
  if (opened) opened->roles.push_back(std::move(declared));
  else add(Roles{{std::move(declared)}});
}

Program Builder::finish() {
  count_warps(program_);
  return program_;
}

void Builder::add(decltype(Statement::node) node, Where where) {
  (open_.empty() ? program_.body : *open_.back()).push_back({std::move(node), {where.file, where.line}});
}

Body Builder::nested(const std::function<void()>& body) {
  Body inner;
  open_.push_back(&inner);
  body();
  open_.pop_back();
  return inner;
}
}  // namespace warploom::tile
