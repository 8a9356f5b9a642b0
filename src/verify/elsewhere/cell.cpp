// On processors other than x86-64 no cell can be made: its code (cell_code.cpp), the registers that
// it begins with and the decoder of what it reads are of that one alone. So nothing is judged
// there, and whoever asks is told so.
#include "verify/cell.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "base/error.h"
#include "target/instruction_set.h"
#include "verify/cell_code.h"
#include "verify/cell_layout.h"
#include "verify/cell_watch.h"

namespace warploom::verify {
namespace {
tl::unexpected<Error> not_here() {
  return fail({ErrorCode::kSandboxMissing, "a candidate cannot be shut in on this processor", "",
               "x86-64, for which that is written",
               std::string(target::instruction_set_here().name),
               "look at the kernels (warploom show --what source) and compile them yourself"});
}
}  // namespace

// None is ever constructed: what follows is there for those who would use one.
Result<std::unique_ptr<Cell>> Cell::start(std::shared_ptr<SharedMemory>, const CellOptions&) {
  return not_here();
}

Cell::~Cell() = default;

uint64_t Cell::address_of(const void* ours) const {
  return layout_->address_of(ours);
}

uint64_t Cell::address_in_image(uint64_t address, int function) const {
  return address - layout_->image().bases[static_cast<size_t>(function)];
}

void Cell::renew(uint64_t seed) {
  layout_->renew(seed);
}

void Cell::keep() {
  layout_->keep();
}

void Cell::renew_as_left() {
  layout_->put_back(CellLayout::kLeft);
}

void Cell::renew_as_new() {
  layout_->put_back(CellLayout::kNew);
}

Result<double> Cell::run(const Round&) {
  return not_here();
}

Result<ReadReport> Cell::watch_reads(const Round&, std::vector<Readable>, bool, uint64_t) {
  return not_here();
}

CellCode cell_code() {
  return {};
}

bool cell_main(int, char**, int*) {
  return false;
}
}  // namespace warploom::verify
