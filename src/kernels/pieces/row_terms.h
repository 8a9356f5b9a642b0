// RowTerms: computes the terms of a row reduction for the tile that a kernel is at.
//
// A term is bound to a register tensor once it has been computed; computing it again is that
// tensor. What passes keep stays in register tensors named after its set (x, x1 …), or between
// passes over tiles in scratch tensors in shared memory.
#pragma once
#include <functional>
#include <map>
#include <set>
#include "kernels/pieces/row_tiles.h"

namespace warploom::kernels {
class RowTerms {
 public:
  explicit RowTerms(RowTiles& tiles) : t_(tiles), rows_(tiles.rows), b_(tiles.b) {}

  using Bindings = std::map<int, Value>;

  bool is_bound(int term) const { return bound_.contains(term); }

  const Value& bound(int term) const { return bound_.at(term); }

  void bind(int term, Value value) { bound_[term] = std::move(value); }

  void forget(int term) { bound_.erase(term); }

  void bind(int term, TensorId tensor) { bound_[term] = b_.value(tensor); }

  const Bindings& bindings() const { return bound_; }

  void bind_all(const Bindings& values) { bound_.insert(values.begin(), values.end()); }

  // After this, terms are bound as they were before `body`.
  void with_own_bindings(const std::function<void()>& body);
  // `body` at every tile of a row, each with bindings of its own.
  void for_each_tile(const std::function<void(const Index&)>& body);

  // A term as a value of the tile, after the loads that it needs.
  Value compute(int term);
  // Computes a term into a register tensor as large as the tile, to which it is bound.
  TensorId materialize(int term, const std::string& name);
  // Computes the numbers that a pass needs of each row.
  void compute_scalars(size_t pass);
  // Materializes what a pass keeps, with `operands` also those of its reductions.
  void keep(size_t pass, bool operands);
  // Forgets what varies along the row and is not kept by the pass.
  void forget_all_but_kept(size_t pass);

  // The value inside the row, and past its end what does not change the reduction.
  Value masked(int reduction, Value value) const;

  void store_rows();     // results along the row
  void store_scalars();  // results of one number a row

  // Shared memory for a set of the row's kept terms: the tile's part of it.
  tile::Tile scratch_of(int set);
  // Binds what a pass kept, after loading it from scratch where it is there.
  void load_kept(size_t pass);

  TensorId register_of(int load_term);

  TensorId set_register(int set) { return t_.tile_reg(set_name(set)); }

  void read(int load_term, TensorId to);
  // Loads that fill a tile come from `source` while it is set.
  using Source = std::function<void(TensorId to)>;

  void set_source(Source source) { source_ = std::move(source); }

  // Before the first row, into shared memory: of loads that are the same for every row so many
  // tiles, which are read from there.
  void load_resident(const std::set<int>& loads, int64_t tiles);

  // The loads along the row that the last pass makes and that pass `kept_by` does not keep.
  std::vector<int> loads_of_last_pass(size_t kept_by) const;

 private:
  std::string set_name(int set) const;
  void add_scalars(int term, std::set<int>& seen);
  void store(size_t output, bool along_row);

  RowTiles& t_;
  const RowReduction& rows_;
  tile::Builder& b_;
  Bindings bound_;
  std::map<int, TensorId> scratch_;   // by set
  std::map<int, TensorId> resident_;  // by load
  int64_t resident_tiles_ = 0;
  Source source_;
};
}  // namespace warploom::kernels
