// Window order: a convolution as a matmul. Both operands are laid anew so that what one row of a
// window takes of its tensor lies in one run: channels last, and behind the channels of one place
// those of the next.
//
//   y = conv(x, w), x [100,3,224,224], w [96,3,11,11], strides 4, pads 2     axes (image, co, p, q,
//   ci, kh, kw) x anew   [100, 227, 227, 3], padded          seen as  [100, 11, 55, 55, 33]  at
//   {image, kh, p, q, run}, which overlap w anew   [96, 11, 11, 3]                     seen as [96,
//   11, 33]           at {co, kh, run}
//
// The sum over ci and kw is one over `run`: 33 neighbours for every pixel, so that few channels
// fill a matrix instruction too and strides cost nothing. What im2win does in memory (a copy of
// every window row) is here a view: memory grows by the padding alone. Runs begin at multiples of
// 16 bytes, as TMA asks.
#pragma once
#include <optional>
#include "kernels/pieces/operand_packing.h"

namespace warploom::kernels {
struct WindowOrder {
  struct Operand {
    // before; after, dimension for dimension; as the kernel takes it
    Access from;
    Access made;
    Access seen;
    std::vector<int64_t> begin;                             // of `made` in `from`
    int64_t elements = 0;                                   // of memory
    Prepared lay(const OperandPacking& preparation) const;  // anew: how it is seen then
  };

  Contraction
      contraction;  // that is left: its channel axis is the run, its window axis is gone from k
  Operand a;
  Operand b;
};

// The access with dimensions that move the same pixels as one, {p} and {kh} as {s · p + d · kh}: of
// those that are never left there is one for each axis. A place of the window moves the pixels
// whose stride is nearest to its own.
Access joined(const Access& from, const Contraction& convolution);

// Nothing where a dimension of an operand is not a plain one of pixels, channels or places, or
// there are too many.
std::optional<WindowOrder> window_order_of(const Contraction& convolution);
}  // namespace warploom::kernels
