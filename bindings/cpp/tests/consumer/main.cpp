// Links and runs.
#include <fawn.hpp>
#include <iostream>

int main() {
    const auto runtime = fawn::runtime::create();
    std::cout << "fawn " << fawn::version() << ": " << runtime.stats().view() << '\n';
}
