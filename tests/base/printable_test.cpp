#include <dflow/base/printable.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

using dflow::printable;

TEST_CASE("what others have said stays one line, and tells a terminal nothing", "[base]") {
  CHECK(printable("") == "");
  CHECK(printable("node 'a/b' of \"x\"") == "node 'a/b' of \"x\"");
  CHECK(printable("one\ntwo\r\tthree") == "one\\x0atwo\\x0d\\x09three");
  CHECK(printable("\x1b[31mred\x7f") == "\\x1b[31mred\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  // U+009B begins a command as ESC [ does; other text of UTF-8 stays as it is.
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(printable("\xc2\xa0gr\xc3\xbc\xc3\x9f\xe2\x82\xac") == "\xc2\xa0gr\xc3\xbc\xc3\x9f\xe2\x82\xac");
  CHECK(printable("\xc2") == "\xc2");
}

TEST_CASE("what is long is cut, and says so", "[base]") {
  CHECK(printable("12345", 5) == "12345");
  CHECK(printable("123456789", 5) == "12345... (4 bytes more)");
  CHECK(printable(std::string(10'000'000, 'x')).size() < 5000);
}

TEST_CASE("what is no UTF-8 becomes U+FFFD, byte by byte") {
  const std::string replaced = "\xef\xbf\xbd";
  for (const std::string& text : {std::string(), std::string("plain"), std::string("\0", 1), std::string("\xc3\xa9"),
                                  std::string("\xe2\x82\xac \xf0\x9f\x98\x80"), std::string("\xf4\x8f\xbf\xbf")}) {
    CHECK(dflow::valid_utf8(text) == text);
    CHECK(dflow::is_utf8(text));
  }
  CHECK(dflow::valid_utf8("a\xff z") == "a" + replaced + " z");
  CHECK(dflow::valid_utf8("cut \xe2\x82") == "cut " + replaced + replaced);
  CHECK(dflow::valid_utf8("\xc0\xaf") == replaced + replaced);
  CHECK(dflow::valid_utf8("\xed\xa0\x80") == replaced + replaced + replaced);
  CHECK(dflow::valid_utf8("\xf4\x90\x80\x80") == replaced + replaced + replaced + replaced);
  CHECK(dflow::valid_utf8("\xe0\x80\x80!") == replaced + replaced + replaced + "!");
  for (const char* text :
       {"a\xff z", "cut \xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80!"}) {
    CHECK(!dflow::is_utf8(text));
  }
}
