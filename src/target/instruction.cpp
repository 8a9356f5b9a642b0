#include "target/instruction.h"
namespace warploom::target {
namespace {
Status check_operand(const Instruction& row, const layout::TvLayout& tv, char operand) {
  const bool covers = tv.threads() == row.threads && tv.is_exact() && (operand != 'c' || tv.is_injective());
  if (covers) return ok();
  return fail({ErrorCode::kInternal, fmt::format("row {}: the layout of operand {} does not cover its tile", row.name, operand),
               std::string(row.name), fmt::format("{} threads, every element equally often", row.threads), layout::to_string(tv),
               "mend the row"});
}
}  // namespace
const std::vector<Instruction>& instructions_of(const std::string& arch) {
  struct Table {
    std::string_view arch;
    std::vector<Instruction> (*rows)();
  };
  static constexpr Table kTables[] = {{"sm_80", sm80_rows}, {"sm_89", sm89_rows}, {"sm_90a", sm90a_rows}};
  static const auto all = [] {
    std::map<std::string, std::vector<Instruction>, std::less<>> by_arch;
    std::vector<Instruction> so_far;  // newest first: what is preferred where several fit
    for (const Table& table : kTables) {
      auto rows = table.rows();
      so_far.insert(so_far.begin(), rows.begin(), rows.end());
      by_arch.emplace(table.arch, so_far);
    }
    return by_arch;
  }();
  static const std::vector<Instruction> none;
  const auto found = all.find(arch);
  return found == all.end() ? none : found->second;
}

Status check(const Instruction& row) {
  const bool is_matrix = row.m > 0;
  if (is_matrix && !row.a_shared) WARPLOOM_CHECK(check_operand(row, row.a, 'a'));
  if (is_matrix && !row.b_shared) WARPLOOM_CHECK(check_operand(row, row.b, 'b'));
  if (is_matrix) WARPLOOM_CHECK(check_operand(row, row.c, 'c'));
  if (!is_matrix && row.method != Method::tensor_copy && row.bytes.empty())
    return fail(
        {ErrorCode::kInternal, fmt::format("row {} has no width", row.name), std::string(row.name), "a width", "none", ""});
  return ok();
}
}  // namespace warploom::target
