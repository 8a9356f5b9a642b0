// Places: tensors as calls see them (problem.h), and the memory behind them.
//
//   Place w = packed_place("w", Dtype::f32, {64, 32});
//   reshaped(w, {8, 8, 32});                 // the same elements in the same order
//   buffer_of(buffers, w);                   // what is bound to the name "w", large enough
#pragma once
#include <optional>
#include "runtime/executor.h"
#include "vendor/problem.h"

namespace warploom::vendor {
// Row-major and without gaps, from the buffer's first element on.
Place packed_place(std::string buffer, Dtype dtype, Shape shape);
bool is_packed(const Place& place);  // from its offset on
int64_t elements_of(const Place& place);

// The same elements, in the same order, under another shape; nothing where strides cannot say it.
std::optional<Place> reshaped(const Place& place, const Shape& shape);
// With leading axes of size 1, up to so many in all.
Place of_rank(Place place, size_t rank);

// The buffer of a place with enough room, or plan-invalid.
Result<runtime::Buffer> buffer_of(const runtime::Bindings& buffers, const Place& place);
// How many bytes of its buffer a place reaches over, from the buffer's beginning.
int64_t reach_of(const Place& place);
// Where the first element lies.
void* address_of(const runtime::Buffer& buffer, const Place& place);

// A batch of rows by one matrix is one matrix of more rows: such a product, with what comes after
// it, in two axes; nothing where it is none.
std::optional<Matmul> flat(const Matmul& call, std::vector<After>& after);
}  // namespace warploom::vendor
