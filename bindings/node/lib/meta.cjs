'use strict';
// What needs no runtime: versions, descriptions, and the state's reducers.

const addon = require('./addon.cjs');
const { toText } = require('./text.cjs');

/** The version of the library. */
const version = () => addon.version();

/** The version of the ABI that the library serves. */
const abiVersion = () => addon.abiVersion();

/** The name of a status as it stands in fawn.h. */
const statusName = (status) => addon.statusName(status);

/** What the library says about itself: "index", "build", "errors", "schemas", "schema/NAME", "handles". */
const describe = (topic) => JSON.parse(describeText(topic));
const describeText = (topic = '') => addon.describe(topic);

/** Folds updates into the value of a channel. */
const reduce = (channel, input) => JSON.parse(reduceText(channel, input));
const reduceText = (channel, input) => addon.reduce(channel, toText(input));

/** Brings messages into canonical form. */
const convertMessages = (input) => JSON.parse(convertMessagesText(input));
const convertMessagesText = (input) => addon.convert(toText(input));

module.exports = {
  version,
  abiVersion,
  statusName,
  describe,
  describeText,
  reduce,
  reduceText,
  convertMessages,
  convertMessagesText,
};
