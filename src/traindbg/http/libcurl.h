// What is used of libcurl, declared here: its binary interface (soname 4) has not changed since 2006, and
// the program is built without its headers. A test compares the numbers with curl/curl.h where that is.
// Private to `http`.
#pragma once

#include <cstddef>
#include <string>

#include "traindbg/base/status.h"

namespace traindbg::http::internal {

using CurlHandle = void;
struct CurlList;  // struct curl_slist

enum CurlOption : int {
    kCurlWriteData = 10001,
    kCurlUrl = 10002,
    kCurlReadData = 10009,
    kCurlErrorBuffer = 10010,
    kCurlPostFields = 10015,
    kCurlUserAgent = 10018,
    kCurlLowSpeedLimit = 19,
    kCurlLowSpeedTime = 20,
    kCurlHttpHeader = 10023,
    kCurlHeaderData = 10029,
    kCurlCustomRequest = 10036,
    kCurlNoProgress = 43,
    kCurlNoBody = 44,
    kCurlUpload = 46,
    kCurlXferInfoData = 10057,
    kCurlCaInfo = 10065,
    kCurlHttpVersion = 84,
    kCurlNoSignal = 99,
    kCurlUseSsl = 119,
    kCurlTimeoutMs = 155,
    kCurlConnectTimeoutMs = 156,
    kCurlUserName = 10173,
    kCurlPassword = 10174,
    kCurlNoProxy = 10177,
    kCurlProtocols = 181,
    kCurlMailFrom = 10186,
    kCurlMailRecipients = 10187,
    kCurlPathAsIs = 234,
    kCurlWriteFunction = 20011,
    kCurlReadFunction = 20012,
    kCurlHeaderFunction = 20079,
    kCurlXferInfoFunction = 20219,
    kCurlInFileSizeLarge = 30115,
    kCurlPostFieldSizeLarge = 30120,
};
inline constexpr long kCurlHttp11 = 2;
inline constexpr long kCurlProtoHttpAndHttps = 3;
inline constexpr long kCurlProtoSmtpAndSmtps = 3L << 16;
inline constexpr long kCurlUseSslAll = 3;
inline constexpr int kCurlResponseCode = 0x200002;
inline constexpr long kCurlGlobalDefault = 3;
inline constexpr std::size_t kCurlErrorBytes = 256;

enum CurlCode : int {
    kCurlOk = 0,
    kCurlUnsupportedProtocol = 1,
    kCurlUrlMalformat = 3,
    kCurlWriteError = 23,
    kCurlOperationTimedOut = 28,
    kCurlAbortedByCallback = 42,
    kCurlPeerFailedVerification = 60,
    kCurlUseSslFailed = 64,
    kCurlLoginDenied = 67,
    kCurlSslCaCertBadFile = 77,
};

struct Curl {
    int (*global_init)(long) = nullptr;
    CurlHandle* (*easy_init)() = nullptr;
    void (*easy_cleanup)(CurlHandle*) = nullptr;
    void (*easy_reset)(CurlHandle*) = nullptr;
    int (*easy_setopt)(CurlHandle*, int, ...) = nullptr;
    int (*easy_perform)(CurlHandle*) = nullptr;
    int (*easy_getinfo)(CurlHandle*, int, ...) = nullptr;
    const char* (*easy_strerror)(int) = nullptr;
    CurlList* (*slist_append)(CurlList*, const char*) = nullptr;
    void (*slist_free_all)(CurlList*) = nullptr;
};

// Loads and initialises it once; it stays loaded. kUnsupported says what to install.
[[nodiscard]] base::Result<const Curl*> load_curl();

}  // namespace traindbg::http::internal
