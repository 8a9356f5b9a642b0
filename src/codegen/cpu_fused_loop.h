// The writer of one loop of fused statements: cpu_fused_loop.cpp writes them, cpu_fused_ahead.cpp
// asks for what later turns read. Private to this room.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>
#include "codegen/cpu_emitter.h"

namespace warploom::codegen {
class CpuEmitter::FusedLoop {
 public:
  FusedLoop(CpuEmitter& emitter, const Body& body, const Run& run, std::span<const Run> later);
  void write();

 private:
  using Statements = std::span<const Statement>;

  int64_t extent_of_loop() const;
  int64_t partial_results() const;
  bool stays_along_a_row(TensorId id) const;

  // What stands before the loop over vectors.
  void find_partial_rows();
  std::string row_range(const Row& row);
  void keep_what_stays();
  void begin(const Statement& statement);
  void open_vectors();

  // In it.
  void write(const Statement& statement);
  void write(const Map& map);
  void write(StatementId id, const Reduce& reduce);
  void write(StatementId id, const Scan& scan);
  void write(const Statement& statement, const Copy& copy);
  void store_row(const Copy& copy);
  std::string loaded(StatementId id, const Copy& copy);
  void keep_changes();
  bool is_held(const Tile& tile) const;
  bool walks(const Copy& copy) const;
  int64_t jump(const Copy& copy) const;
  bool is_followed(const Copy& copy) const;
  void fetch_ahead(const std::string& row, int64_t jump, bool streaming);
  void prefetch_rows();
  void prefetch_windows();

  // Behind it.
  void write_result(StatementId id, const Reduce& reduce);

  std::string current(TensorId id);
  std::string coordinate(const Value& value, const Map& map);
  std::string first_of(const std::string& vector, double beyond) const;
  void set(TensorId id, const std::string& to);
  void set_copied(const Statement& statement, const Copy& copy, const std::string& to);

  std::string local(const std::string& text, TensorId named_after) {
    return out_.local(text, out_.tensor(named_after).name);
  }

  CpuEmitter& out_;
  const Body& body_;
  const Run& run_;
  std::span<const Run> later_;
  Statements statements_;
  const std::vector<int64_t>& shape_;  // of the tensors that the run walks
  size_t along_;                       // its dimension that vectors run along
  // Without need of rows tensors of several dimensions are walked from end to end, padding
  // included.
  bool flat_;
  bool rows_;
  int64_t extent_;
  bool single_;  // one element: no loop
  // The last vector is a part of one. Arrays end in room for a vector.
  bool ragged_;
  int64_t parts_;  // results of a reduction side by side, so that it does not wait for itself
  std::string v_;  // the vector's first element
  std::string u_;  // among the partial results
  std::string w_;
  std::string step_;
  std::string ahead_;
  std::vector<Loop> loops_ = {};                          // over rows
  std::map<TensorId, std::string> value_ = {};            // locals: of what tensors hold
  std::map<StatementId, std::string> total_ = {};         // of what reductions and scans passed
  std::map<TensorId, const Statement*> changed_ = {};     // what arrays lack; the copy, if one
  std::map<StatementId, std::string> partial_rows_ = {};  // loads of rows partly outside
};

}  // namespace warploom::codegen
