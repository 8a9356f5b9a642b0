// Reads what the lines of syntax.h are made of from the tokens of a line; docs/tile.md has the grammar.
#pragma once
#include "tile/lexer.h"
#include "tile/syntax.h"
namespace warploom::tile {
class Reader : public Cursor {
 public:
  Reader(const Line& line, std::string_view file, const Program& program) : Cursor(line, file), program_(program) {}

  void item(const char* sign);  // blanks round it do not count
  void item(std::string& name) { name = word("a name"); }
  void item(int& to) { to = small("a number of 0 to 2^20"); }
  void item(double& to) { to = real(); }
  void item(std::vector<std::int64_t>& shape) { shape = integers("[", "]"); }
  void item(std::vector<TensorId>& tensors);
  void item(Dtype& to);
  void item(ReduceOp& to);
  void item(std::optional<ReduceOp>& to) { item(to.emplace()); }
  void item(Index& to);
  void item(std::optional<Index>& to) { item(to.emplace(0)); }
  void item(Tile& to);  // "a", "a[k * 64 +64, 0 +16]" or "a[gather(rows, k * 64) +64, 0 +16]"
  void item(Value& to) { to = value(0); }
  void item(Keyword<Tensor> to);
  void item(Named<int> to);
  void item(Extents<std::vector<std::int64_t>> to);  // (x), (x, y) or (x, y, z)
  void item(Flag<bool> flag) { flag.on = option(flag.word); }
  template <class T>
  void item(Optional<T> optional) {
    if (option(optional.word)) item(optional.value);
  }

 private:
  bool option(std::string_view word);
  bool extent_follows() const;
  Index binary(int precedence);
  Index primary();
  Index call();
  Value value(int depth);
  bool deeper();

  const Program& program_;
  bool in_tile_ = false;  // the last "+ integer" of an offset is the extent, not a term
  int depth_ = 0, terms_ = 0;
};
}  // namespace warploom::tile
