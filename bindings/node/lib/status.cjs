'use strict';
// The positive statuses of fawn.h, which the addon answers as numbers where there is no text.

module.exports = Object.freeze({ OK: 0, TIMEOUT: 1, CLOSED: 2, INTERRUPTED: 3, GONE: 4 });
