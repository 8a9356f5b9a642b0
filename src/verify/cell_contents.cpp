// What a cell holds and where, told and put back from outside: the same on every processor.
#include <cstddef>
#include <cstdint>
#include "verify/cell.h"
#include "verify/cell_layout.h"

namespace warploom::verify {
uint64_t Cell::address_of(const void* ours) const {
  return layout_->address_of(ours);
}

uint64_t Cell::address_in_image(uint64_t address, int function) const {
  return address - layout_->image().bases[static_cast<size_t>(function)];
}

void Cell::renew(uint64_t seed) {
  layout_->renew(seed);
  begins_ = Begins::as_new;
}

void Cell::keep() {
  keep_registers();
  layout_->keep();
}

void Cell::renew_as_left() {
  layout_->put_back(CellLayout::kLeft);
  begins_ = Begins::as_kept;
}

void Cell::renew_as_new() {
  layout_->put_back(CellLayout::kNew);
  begins_ = Begins::as_new;
}

void Cell::go_on() {
  begins_ = Begins::as_left;
}

}  // namespace warploom::verify
