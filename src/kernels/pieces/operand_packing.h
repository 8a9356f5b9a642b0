// Operands made ready for a kernel, by programs of their own: in other order or padded, converted,
// with zeros where a triangle counts as 0.
#pragma once
#include "kernels/pieces/precision.h"

namespace warploom::kernels {
// Whether it is read or written from the first element of its tensor on, each dimension along an
// axis.
bool is_whole(const Access& access);
// Whether what follows the sum, and the output, are such tensors of floats.
bool stores_whole(const Contraction& contraction);

// A tensor in other order, or padded, in workspaces that a program of its own writes; rounded to
// tf32, `low` being what rounding lost where there are three terms. Halves: `most`, the largest
// magnitude of each row, is measured before.
struct Prepared {
  Access high;
  Access low;
  Access amax = {};
};

struct OperandPacking {
  Family::Programs& out;
  std::string name;  // of the operand
  Precision precision;
  const Capabilities& capabilities;

  // Element i along the new tensor's dimensions is the one at i + begin of `from`, a coordinate
  // each, 0 where that has none. Elements of a row lie along the dimensions `over`.
  Prepared place(const Access& from, const std::vector<int64_t>& begin,
                 const std::vector<size_t>& over, const Access& made, int64_t elements) const;
  // The same by an access of `from` and one of the new tensor, in a nest of these axes; `across` of
  // a tile's elements along the last.
  Prepared convert(const std::vector<int64_t>& axes, const std::vector<size_t>& over,
                   const Access& from, const Access& made, int64_t elements, int64_t across) const;
  // One element after another along k, or for types of 16 bits along rows where it is so already,
  // all else in steps of 16 bytes.
  Prepared repack(const Access& from, size_t row, size_t k, bool along_k) const;
  // The same for a kernel fed by TMA: where that can read the operand as it is, nothing is written.
  Prepared pack_for_tma(const Access& from, size_t row, size_t k) const;
};

// The contraction with zeros written, by programs of their own, where factors count as 0.
Contraction filled(Family::Programs& out, Contraction contraction,
                   const Capabilities& capabilities);
}  // namespace warploom::kernels
