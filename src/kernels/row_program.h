// Programs of rows: what the GPU's and the CPU's family share. A RowProgram emits the statements
// that compute rows tile by tile; where a row stays between its passes is the caller's choice of
// member function.
#pragma once
#include "kernels/kernel_builder.h"
#include "loopnest/row_reduction.h"

namespace warploom::kernels {
struct RowProgram {
  const RowReduction& rows;
  int64_t cluster = 1;     // blocks that share a row, each with a part of its last axis
  bool in_memory = false;  // where they meet: they are no cluster of the target's
  bool in_pieces = false;  // in_passes: what is held stays in registers, each tile's in its own
  bool streaming = false;  // results are stored past the caches
  int64_t l2_bytes = 0;
  int64_t threads = 0;  // of a block; where set, what the last pass loads may come early
  bool compensated =
      false;  // in_passes: sums keep what rounding loses, since there are thousands of tiles
  KernelBuilder draft{"rowwise"};
  tile::Builder& b = draft.b;
  // global tensors
  std::vector<TensorTile> in;
  std::vector<TensorTile> out;
  TileCoord at;                       // by axis, and one more for `across` where it is none
  std::vector<Index> start;           // where the row begins, or a block's part of it
  std::map<int, Value> bound = {};    // terms that have been computed
  std::map<int, TensorId> kept = {};  // by slot: the shared tensor of a row's held terms
  std::map<int, TensorId> same = {};  // by load: what every row takes, in shared memory
  int64_t same_tiles = 0;             // so many of its tiles
  std::function<void(TensorId)> fetch =
      {};  // where set: loads what varies along all of a tile, in the first pass
  std::vector<std::function<void()>>
      meanwhile;      // done where blocks meet in memory, before they wait
  int64_t piece = 0;  // the tile that is walked over
  Index group = 0;    // of rows that the tile is at
  int64_t met = 0;    // in memory, so often a tile
  TensorId met_parts = -1;
  TensorId met_flags = -1;
  TensorId own_top = -1;  // of a block of a cluster: see `ahead`

  // Tiles are of these extents, 1 off RowReduction::dims.
  RowProgram(const RowReduction& all, std::vector<int64_t> extents, int64_t blocks = 1);

  int64_t tiles(size_t axis) const;  // along an axis; of a row's last one in a block's part of it
  int64_t tiles(const std::vector<size_t>& axes) const;
  void go_to(const Index& rows_of_tile);  // counted in tiles along the outer axes
  void go_along(const Index& number);     // to that tile of the row
  // Before the first row, into shared memory: of loads that are the same for every row so many
  // tiles.
  void stay(const std::set<int>& loads, int64_t count);
  void in_registers();  // a tile is a whole row, or a block's part of it
  void in_passes(
      bool keep);  // over tiles; what is held stays in shared memory, or is computed again

  // Pieces of those.
  Value compute(int term);  // after the loads that it needs
  TensorId put(
      int term,
      const std::string& name);  // in a register tensor as large as the tile, to which it is bound
  void settle(size_t pass);      // computes the numbers that the pass needs of each row
  void hold(size_t pass,
            bool operands);  // puts what the pass holds, and perhaps the operands of its reductions
  void reduce(int term, TensorId from, bool alone = false);  // over the row; binds it
  std::vector<TensorId> meet(
      const std::vector<TensorId>& own);  // combines it over the blocks that share the row
  // A softmax's blocks need not wait for the row's maximum to take exponentials: each takes them of
  // differences to its own, while the others' is on its way, and then scales them. The same for
  // pass 0's sum and the squares of RowReduction::spread.
  bool ahead() const;
  void go_ahead(size_t pass);
  void catch_up();  // scales what is held of it
  std::optional<std::pair<int, int>> share()
      const;  // the term that is the exponential times one number a row, and that

  int row_dim() const {
    return static_cast<int>(std::ranges::find(rows.dims, rows.row.back()) - rows.dims.begin());
  }

  Index rank() const {
    return in_memory ? tile::block(0) % cluster : tile::cluster_rank();
  }  // among those

  void walk(const std::function<void(const Index&)>& body);  // over the row's tiles
  Value masked(int term, Value value) const;
  void store(bool along);  // results along the row, or the others
  std::vector<int> last_loads(
      size_t held_by) const;  // what the last pass loads along the row, and that pass does not hold
  TensorId register_of(int load);  // a term
  std::string slot_name(int slot) const;
  TensorId reg(const std::string& name, const std::vector<bool>& varies, Dtype dtype = Dtype::f32);

  TensorId number(const std::string& name) { return reg(name, {}); }  // one a row

  TensorId whole(const std::string& name) {
    return reg(name, std::vector<bool>(start.size(), true));
  }

  tile::Tile keep(int slot);  // where the tile's part of a slot stays
  void take(size_t pass);     // loads and binds what the pass held
  void read(const RowTerm& load, TensorId to);
};
}  // namespace warploom::kernels
