// Tensors in files: NAME.npy, NumPy's format (versions 1 to 3, in C order), or any other name: the packed bytes alone.
#pragma once
#include <filesystem>
#include "codegen/launch_list.h"
namespace warploom::cli {
// The bytes of `tensor` from a file; plan-invalid where its type, shape or size is another, or the .npy cannot be read.
Result<std::string> read_tensor(const std::filesystem::path& path, const BufferSpec& tensor);
// Writes FOLDER/NAME.npy, or .bin where NumPy has no such type (bf16, 8-bit floats): the path.
Result<std::filesystem::path> write_tensor(const std::filesystem::path& folder, const BufferSpec& tensor, std::string_view bytes);
}  // namespace warploom::cli
