// One program out of two files that are compiled differently: mixed_other.cpp without exceptions, and with another standard.
#include "check.hpp"

int other_flavour();

int main() {
    CHECK(other_flavour() == 7);
    {
        const objects o;
        CHECK(MUST(o.start().try_wait()));
    }
    CHECK(other_flavour() == 7);
    check_nothing_left();
    return 0;
}
