#include "traindbg/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace traindbg::base {
namespace {

// FIPS 180-4 examples and the empty message.
TEST(Sha256, CheckValues) {
    EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex(sha256(as_bytes("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(sha256(as_bytes(std::string(1000000, 'a')))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        Sha256 hash;
        hash.update(as_bytes(std::string_view(text).substr(0, cut)));
        hash.update(as_bytes(std::string_view(text).substr(cut)));
        ASSERT_EQ(hash.finish(), sha256(as_bytes(text))) << cut;
    }
}

TEST(Sha256, InstructionsGiveTheSameAsPlainCode) {
    std::string text;
    for (int i = 0; i < 64 * 37; ++i) text += static_cast<char>(i * i + 3 * i);
    std::array<std::uint32_t, 8> fast{1, 2, 3, 4, 5, 6, 7, 8};
    std::array<std::uint32_t, 8> plain = fast;
    if (!internal::sha256_blocks_fast(fast.data(), as_bytes(text).data(), 37))
        GTEST_SKIP() << "this processor has no SHA instructions";
    internal::sha256_blocks_plain(plain.data(), as_bytes(text).data(), 37);
    EXPECT_EQ(fast, plain);
}

// RFC 4231, test cases 1, 2 and 6.
TEST(Sha256, HmacCheckValues) {
    EXPECT_EQ(hex(hmac_sha256(as_bytes(std::string(20, '\x0b')), as_bytes("Hi There"))),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(hex(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex(hmac_sha256(as_bytes(std::string(131, '\xaa')),
                              as_bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace traindbg::base
