// The other half of mixed.cpp.
#include "check.hpp"

int other_flavour();

int other_flavour() {
    const objects o;
    const auto refused = fawn::runtime::try_create(R"({"nonsense":1})");
    CHECK_ERROR(err_unknown_member, refused);
    return MUST(o.start().try_wait()) ? 7 : 0;
}
