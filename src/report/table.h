// Tables of records: what their columns are and how each is written stands in
// resources/report/tables.json, a row a column. A new column of a record is a row there.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace warploom::report {
// The table `name` of tables.json, a record a row; "" where there are none.
std::string table(const std::string& name, const nlohmann::json& records);
}  // namespace warploom::report
