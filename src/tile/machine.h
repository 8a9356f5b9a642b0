// The interpreter's machine: what a block holds while it runs, and the statements' work on it.
//
// Elements are kept as doubles that are exact values of the tensor's type, beside a mark for each that says whether it was ever
// written. Shared and register tensors begin unwritten; a slot of a pipeline begins unwritten each time it is produced.
#pragma once
#include "tile/interpret.h"
namespace warploom::tile {
struct Storage {
  std::vector<double> values;
  std::vector<std::uint8_t> written;
};

struct Queue {
  std::vector<std::vector<std::shared_ptr<Storage>>> slots;  // [slot][tensor of the pipeline]
  std::map<int, std::size_t> taken;                          // slots consumed so far, by role (-1: no roles)
};

struct Block {
  std::map<std::string, std::int64_t> variables;
  std::vector<std::shared_ptr<Storage>> tensors;  // null: never written, or global
  std::vector<Queue> queues;
};

// Where an error happened: the statement and the block.
struct Site {
  const Program& program;
  const Buffers& buffers;
  const Location& location;
  Block& block;
};

tl::unexpected<Error> undefined(const Site& site, std::string message, std::string expected = {}, std::string found = {});

Result<std::int64_t> value_of(const Site& site, const Index& index);

// All elements of a shared or register tensor, in row-major order.
Result<std::vector<double>> read_all(const Site& site, TensorId tensor);
Status write_all(const Site& site, TensorId tensor, const std::vector<double>& values);

// Statements that concern one block alone.
Status run(const Site& site, const Site& source, const Copy& copy);  // `source`: where its source lies
Status run(const Site& site, const Fill& fill);
Status run(const Site& site, const Map& map);
Status run(const Site& site, const Mma& mma);
Status run(const Site& site, const Reduce& reduce);
Status run(const Site& site, const Scan& scan);
Status run(const Site& site, const Rearrange& rearrange);
Status run(const Site& site, const Reinterpret& reinterpret);
Status run(const Site& site, const Signal& signal);
Status run(const Site& site, const Wait& wait);
float combine(ReduceOp op, float a, float b);
}  // namespace warploom::tile
