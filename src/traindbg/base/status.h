// Errors as values.
//
// The core never throws: every operation that can fail returns a `Status` or a `Result<T>`, both of
// which the compiler refuses to let a caller ignore. Messages start with the thing that failed (a
// path, an option, a tensor name) and end with what to do about it, because most of them are printed
// to a user as they are. `python/bindings` is the one place that turns a `Status` into an exception.
//
// Thread-safety: plain values.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace traindbg::base {

enum class Code : std::uint8_t {
    kOk,
    kInvalidArgument,    // the caller's input is wrong; retrying cannot help
    kNotFound,           // a file, run, rule or tensor of that name does not exist
    kAlreadyExists,      // something is there that must not be overwritten
    kPermissionDenied,   // the operating system said no
    kResourceExhausted,  // disk, memory, quota or descriptors are used up
    kDataLoss,           // stored bytes are damaged
    kUnavailable,        // not now; may work later
    kUnsupported,        // understood, but this build or format version cannot do it
    kInternal,           // a defect of ours
};

[[nodiscard]] std::string_view to_string(Code code) noexcept;

class [[nodiscard]] Status {
  public:
    Status() noexcept = default;
    Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

    [[nodiscard]] static Status ok() noexcept { return {}; }
    // The status for `errno` value `error`, e.g. `from_errno("/runs/a: open", ENOSPC)`.
    [[nodiscard]] static Status from_errno(std::string_view what, int error);

    [[nodiscard]] bool is_ok() const noexcept { return code_ == Code::kOk; }
    explicit operator bool() const noexcept { return is_ok(); }
    [[nodiscard]] Code code() const noexcept { return code_; }
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    // "data_loss: /runs/a: ..." for logs; users are shown `message()` alone.
    [[nodiscard]] std::string to_string() const;

    // States, where it is not obvious, that an error has been looked at and is dropped on purpose.
    void ignore() const noexcept {}

  private:
    Code code_ = Code::kOk;
    std::string message_;
};

// Either a value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
  public:
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
        assert(!std::get<1>(state_).is_ok() && "a Result built from a Status must carry an error");
    }

    [[nodiscard]] bool is_ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return is_ok(); }
    // The error, or an ok status when there is a value.
    [[nodiscard]] Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }

    [[nodiscard]] T& value() & {
        assert(is_ok());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] const T& value() const& {
        assert(is_ok());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] T&& value() && {
        assert(is_ok());
        return std::move(*std::get_if<0>(&state_));
    }
    [[nodiscard]] T& operator*() & { return value(); }
    [[nodiscard]] const T& operator*() const& { return value(); }
    [[nodiscard]] T* operator->() { return &value(); }
    [[nodiscard]] const T* operator->() const { return &value(); }

  private:
    std::variant<T, Status> state_;
};

}  // namespace traindbg::base

// Leaves the function with the error, if there is one.
#define TRAINDBG_RETURN_IF_ERROR(expression)                                                   \
    do {                                                                                       \
        if (::traindbg::base::Status traindbg_status = (expression); !traindbg_status.is_ok()) \
            return traindbg_status;                                                            \
    } while (false)

#define TRAINDBG_CONCAT_(a, b) a##b
#define TRAINDBG_CONCAT(a, b) TRAINDBG_CONCAT_(a, b)
// `TRAINDBG_ASSIGN_OR_RETURN(auto file, open(path));`
#define TRAINDBG_ASSIGN_OR_RETURN(target, expression) \
    TRAINDBG_ASSIGN_OR_RETURN_(TRAINDBG_CONCAT(traindbg_result_, __LINE__), target, expression)
#define TRAINDBG_ASSIGN_OR_RETURN_(result, target, expression) \
    auto result = (expression);                                \
    if (!(result).is_ok()) return (result).status();           \
    target = std::move(result).value()
