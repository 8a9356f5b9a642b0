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

Result<double> Cell::run(const Round&) {
  return not_here();
}

Result<ReadReport> Cell::watch_reads(const Round&, std::vector<Readable>, bool, uint64_t) {
  return not_here();
}

void Cell::keep_registers() {}

CellCode cell_code() {
  return {};
}

bool cell_main(int, char**, int*) {
  return false;
}
}  // namespace warploom::verify
