// A new empty directory that is removed, with all that was put into it, at the end of a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace traindbg::testing {

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string pattern = ::testing::TempDir() + "/traindbg-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
        if (error) ADD_FAILURE() << "cannot remove " << path_ << ": " << error.message();
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace traindbg::testing
