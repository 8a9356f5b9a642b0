// Names of which no two are alike.
//
//   FreshNames names;
//   names.fresh("y", "/")    "y"
//   names.fresh("y", "/")    "y/2"
//   names.fresh("y", "/")    "y/3", found at once: the next number of each name is known
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace warploom {
class FreshNames {
 public:
  void insert(std::string name) { taken_.insert(std::move(name)); }

  // `wanted`, or it with the first number behind `between` that makes it new.
  std::string fresh(const std::string& wanted, std::string_view between) {
    if (taken_.insert(wanted).second) return wanted;
    int& number = next_.try_emplace(wanted, 2).first->second;
    while (true) {
      std::string name = wanted;
      name.append(between).append(std::to_string(number++));
      if (taken_.insert(name).second) return name;
    }
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> next_;
};
}  // namespace warploom
