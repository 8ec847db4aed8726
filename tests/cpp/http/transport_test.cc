// The transport without a server; what it does with one: tests/cpp/s3 and tests/e2e.
#include <gtest/gtest.h>

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#define TRAINDBG_HAS_CURL_HEADER 1
#endif
#include "traindbg/base/clock.h"
#include "traindbg/http/http.h"
#include "traindbg/http/libcurl.h"

namespace traindbg::http {
namespace {

base::Status perform(const std::string& url) {
    HttpRequest request;
    request.url = url;
    request.uses_proxy = false;
    const auto transport = make_curl_transport();
    return transport->perform(request, {base::monotonic_nanos() + 5'000'000'000, nullptr}).status();
}

TEST(CurlTransport, WhatIsNoUrlOfHttpIsRefused) {
    if (!internal::load_curl().is_ok()) GTEST_SKIP() << "no libcurl here";
    EXPECT_EQ(perform("file:///etc/passwd").code(), base::Code::kInvalidArgument);
    EXPECT_EQ(perform("ftp://127.0.0.1/x").code(), base::Code::kInvalidArgument);
}

TEST(CurlTransport, AServerThatIsNotThereMayBeThereLater) {
    if (!internal::load_curl().is_ok()) GTEST_SKIP() << "no libcurl here";
    EXPECT_EQ(perform("http://127.0.0.1:9/").code(), base::Code::kUnavailable);  // "discard"
}

TEST(CurlTransport, NobodyWaitsOnceTheTimeIsOver) {
    HttpRequest request;
    request.url = "http://127.0.0.1:9/";
    EXPECT_EQ(make_curl_transport()->perform(request, {0, nullptr}).status().code(),
              base::Code::kUnavailable);
}

#ifdef TRAINDBG_HAS_CURL_HEADER
TEST(Libcurl, NumbersAreThoseOfItsHeader) {
    using namespace internal;
    EXPECT_EQ(+kCurlWriteData, +CURLOPT_WRITEDATA);
    EXPECT_EQ(+kCurlUrl, +CURLOPT_URL);
    EXPECT_EQ(+kCurlErrorBuffer, +CURLOPT_ERRORBUFFER);
    EXPECT_EQ(+kCurlPostFields, +CURLOPT_POSTFIELDS);
    EXPECT_EQ(+kCurlUserAgent, +CURLOPT_USERAGENT);
    EXPECT_EQ(+kCurlLowSpeedLimit, +CURLOPT_LOW_SPEED_LIMIT);
    EXPECT_EQ(+kCurlLowSpeedTime, +CURLOPT_LOW_SPEED_TIME);
    EXPECT_EQ(+kCurlHttpHeader, +CURLOPT_HTTPHEADER);
    EXPECT_EQ(+kCurlHeaderData, +CURLOPT_HEADERDATA);
    EXPECT_EQ(+kCurlCustomRequest, +CURLOPT_CUSTOMREQUEST);
    EXPECT_EQ(+kCurlNoProgress, +CURLOPT_NOPROGRESS);
    EXPECT_EQ(+kCurlNoBody, +CURLOPT_NOBODY);
    EXPECT_EQ(+kCurlXferInfoData, +CURLOPT_XFERINFODATA);
    EXPECT_EQ(+kCurlCaInfo, +CURLOPT_CAINFO);
    EXPECT_EQ(+kCurlHttpVersion, +CURLOPT_HTTP_VERSION);
    EXPECT_EQ(+kCurlNoSignal, +CURLOPT_NOSIGNAL);
    EXPECT_EQ(+kCurlTimeoutMs, +CURLOPT_TIMEOUT_MS);
    EXPECT_EQ(+kCurlConnectTimeoutMs, +CURLOPT_CONNECTTIMEOUT_MS);
    EXPECT_EQ(+kCurlNoProxy, +CURLOPT_NOPROXY);
    EXPECT_EQ(+kCurlProtocols, 181);  // CURLOPT_PROTOCOLS, deprecated in new headers, and kept
    EXPECT_EQ(+kCurlPathAsIs, +CURLOPT_PATH_AS_IS);
    EXPECT_EQ(+kCurlWriteFunction, +CURLOPT_WRITEFUNCTION);
    EXPECT_EQ(+kCurlHeaderFunction, +CURLOPT_HEADERFUNCTION);
    EXPECT_EQ(+kCurlXferInfoFunction, +CURLOPT_XFERINFOFUNCTION);
    EXPECT_EQ(+kCurlPostFieldSizeLarge, +CURLOPT_POSTFIELDSIZE_LARGE);
    EXPECT_EQ(+kCurlReadData, +CURLOPT_READDATA);
    EXPECT_EQ(+kCurlUpload, +CURLOPT_UPLOAD);
    EXPECT_EQ(+kCurlUseSsl, +CURLOPT_USE_SSL);
    EXPECT_EQ(+kCurlUserName, +CURLOPT_USERNAME);
    EXPECT_EQ(+kCurlPassword, +CURLOPT_PASSWORD);
    EXPECT_EQ(+kCurlMailFrom, +CURLOPT_MAIL_FROM);
    EXPECT_EQ(+kCurlMailRecipients, +CURLOPT_MAIL_RCPT);
    EXPECT_EQ(+kCurlReadFunction, +CURLOPT_READFUNCTION);
    EXPECT_EQ(+kCurlInFileSizeLarge, +CURLOPT_INFILESIZE_LARGE);
    EXPECT_EQ(kCurlProtoSmtpAndSmtps, CURLPROTO_SMTP | CURLPROTO_SMTPS);
    EXPECT_EQ(kCurlUseSslAll, +CURLUSESSL_ALL);
    EXPECT_EQ(+kCurlUseSslFailed, +CURLE_USE_SSL_FAILED);
    EXPECT_EQ(+kCurlLoginDenied, +CURLE_LOGIN_DENIED);
    EXPECT_EQ(kCurlHttp11, +CURL_HTTP_VERSION_1_1);
    EXPECT_EQ(kCurlProtoHttpAndHttps, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    EXPECT_EQ(kCurlResponseCode, +CURLINFO_RESPONSE_CODE);
    EXPECT_EQ(kCurlErrorBytes, std::size_t{CURL_ERROR_SIZE});
    EXPECT_EQ(+kCurlAbortedByCallback, +CURLE_ABORTED_BY_CALLBACK);
    EXPECT_EQ(+kCurlPeerFailedVerification, +CURLE_PEER_FAILED_VERIFICATION);
    EXPECT_EQ(+kCurlSslCaCertBadFile, +CURLE_SSL_CACERT_BADFILE);
    EXPECT_EQ(+kCurlUrlMalformat, +CURLE_URL_MALFORMAT);
}
#endif

}  // namespace
}  // namespace traindbg::http
