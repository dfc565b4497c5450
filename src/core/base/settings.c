// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of tunables and its parser. An unknown or invalid word makes the open fail. The message
 * names the word and its source, and lists the valid values.
 */
#include "core/base/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define KEY_MAX 32 /* including the terminating null */

/* One word of the instance data; not null-terminated. */
struct word {
	const char *text;
	size_t len;
};

struct setting {
	const char *key;
	size_t offset; /* of its uint64_t, or what `set` writes, in struct core_settings */
	uint64_t initial;
	uint64_t min;
	uint64_t max;
	const char *unit;	  /* of a number */
	const char *const *words; /* words[value] is its name; ends with NULL */
	/* neither: reads the word; `name` is for the message. Without the setting: all bytes 0 */
	int (*set)(void *value, const char *name, struct word word);
	const char *range; /* what it reads */
	const char *help;
};

static const char *const copy_words[] = {
	[CORE_COPY_AUTO] = "auto",
	[CORE_COPY_MAP] = "map",
	[CORE_COPY_CMA] = "cma",
	[CORE_COPY_RING] = "ring",
	NULL,
};

static const char *const transport_words[] = {
	[CORE_TRANSPORT_AUTO] = "auto",
	[CORE_TRANSPORT_SHM] = "shm",
	[CORE_TRANSPORT_TCP] = "tcp",
	NULL,
};

static const char *const peers_words[] = {
	[CORE_PEERS_ANY] = "any",
	[CORE_PEERS_USER] = "user",
	NULL,
};

static const char *const crc_words[] = {
	[CORE_CRC_AUTO] = "auto",
	[CORE_CRC_ON] = "on",
	[CORE_CRC_OFF] = "off",
	NULL,
};

static const char *const header_words[] = {
	[CORE_HEADER_ON] = "on",
	[CORE_HEADER_OFF] = "off",
	NULL,
};

static const char *const proof_words[] = {
	[CORE_PROOF_ON] = "on",
	[CORE_PROOF_BYTE] = "byte",
	[CORE_PROOF_OFF] = "off",
	NULL,
};

static const char *const rmr_words[] = {
	[CORE_RMR_AUTO] = "auto",
	[CORE_RMR_WINDOW] = "window",
	[CORE_RMR_REGISTRATION] = "registration",
	NULL,
};

static const char *const cancellation_words[] = {
	[CORE_CANCELLATION_AUTO] = "auto",
	[CORE_CANCELLATION_NEVER] = "never",
	NULL,
};

static int set_path(void *value, const char *name, struct word word);
static int set_cpus(void *value, const char *name, struct word word);

#define FIELD(name) .key = #name, .offset = offsetof(struct core_settings, name)

static const struct setting settings_table[] = {
	{FIELD(transport), .initial = CORE_TRANSPORT_AUTO, .words = transport_words,
	 .help = "how the software adapters reach a peer"},
	{FIELD(copy), .initial = CORE_COPY_AUTO, .words = copy_words,
	 .help = "copy path of RDMA on one host"},
	{FIELD(peers), .initial = CORE_PEERS_ANY, .words = peers_words,
	 .help = "who may connect on one host: any process, or those of the same user"},
	{FIELD(peer_timeout_ms), .initial = 5000, .min = 1, .max = 600000, .unit = "ms",
	 .help = "longest wait for a peer that is stopped during a copy"},
	{FIELD(setup_timeout_ms), .initial = 30000, .min = 1, .max = 600000, .unit = "ms",
	 .help = "longest time that a connection set-up waits for a silent peer"},
	{FIELD(rnr_timeout_ms), .initial = 0, .min = 0, .max = 600000, .unit = "ms",
	 .help = "how long a message waits for a Receive; 0: no limit"},
	{FIELD(link_timeout_ms), .initial = 25000, .min = 2000, .max = 600000, .unit = "ms",
	 .help = "how long a connection over TCP waits for a peer that does not answer"},
	{FIELD(crc), .initial = CORE_CRC_AUTO, .words = crc_words,
	 .help = "whether to ask a peer over TCP for the CRC of each frame; auto: on another host"},
	{FIELD(header), .initial = CORE_HEADER_ON, .words = header_words,
	 .help = "whether requests over TCP carry OpenDAT's header before the private data"},
	{FIELD(write_proof), .initial = CORE_PROOF_ON, .words = proof_words,
	 .help = "how a peer over TCP proves that an RDMA Write is placed"},
	{FIELD(rmr_bind), .initial = CORE_RMR_AUTO, .words = rmr_words,
	 .help = "what a bind of an RMR makes on an RDMA device"},
	{FIELD(cancellation), .initial = CORE_CANCELLATION_AUTO, .words = cancellation_words,
	 .help = "whether a thread may be cancelled in a post or a dequeue on an RDMA device"},
	{FIELD(spin_us), .initial = 20, .min = 0, .max = 1000000, .unit = "us",
	 .help = "how long a waiting call polls before it sleeps"},
	{FIELD(socket_dir), .set = set_path, .range = "an absolute path",
	 .help = "a directory in which service points are found by other containers of this host"},
	{FIELD(service_cpus), .set = set_cpus, .range = "a list such as 0-1,3",
	 .help = "the processors of the threads that serve an adapter"},
};

#define SETTING_COUNT (sizeof(settings_table) / sizeof(settings_table[0]))

_Static_assert((SETTING_COUNT - 2) * sizeof(uint64_t) + CORE_SOCKET_DIR_MAX + sizeof(cpu_set_t) ==
		       sizeof(struct core_settings),
	       "every setting is in the table, and two are no numbers");

/* The state of parsing one line. */
struct reader {
	struct core_settings values;
	bool is_given[SETTING_COUNT]; /* in the instance data */
	struct word device;
	struct word port; /* of the OpenFabrics form "eth0 0" */
};

/* The message of the calling thread's last failure. The next failure overwrites it. */
static _Thread_local char settings_message[256];

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(settings_message, sizeof(settings_message), format, list);
	va_end(list);
	return -EINVAL;
}

/* The precision for "%.*s": messages show at most 64 characters of a word. */
static int shown_len(struct word word)
{
	return word.len < 64 ? (int)word.len : 64;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_number(struct word word)
{
	for (size_t i = 0; i < word.len; i++) {
		if (word.text[i] < '0' || word.text[i] > '9')
			return false;
	}
	return word.len > 0;
}

static uint64_t *setting_value(struct core_settings *values, const struct setting *setting)
{
	return (uint64_t *)(void *)((char *)values + setting->offset);
}

/* False: not a decimal number, or too large for uint64_t. */
static bool read_number(struct word word, uint64_t *value_out)
{
	uint64_t value = 0;

	if (!is_number(word))
		return false;
	for (size_t i = 0; i < word.len; i++) {
		uint64_t digit = (uint64_t)(word.text[i] - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*value_out = value;
	return true;
}

/* "auto, map, cma or ring" */
static void list_words(const char *const *words, char *text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; words[i] && len < size; i++) {
		const char *glue = i == 0 ? "" : words[i + 1] ? ", " : " or ";

		len += (size_t)snprintf(text + len, size - len, "%s%s", glue, words[i]);
	}
}

static int set_path(void *value, const char *name, struct word word)
{
	char *path = value;

	if (!word.len || word.text[0] != '/')
		return refuse("%s: \"%.*s\" is not an absolute path", name, shown_len(word),
			      word.text);
	if (word.len >= CORE_SOCKET_DIR_MAX)
		return refuse("%s: \"%.*s...\" is longer than %d characters", name, shown_len(word),
			      word.text, CORE_SOCKET_DIR_MAX - 1);
	memcpy(path, word.text, word.len);
	path[word.len] = '\0';
	return 0;
}

/* Takes the number at the beginning of the word. False: there is none below CPU_SETSIZE. */
static bool take_cpu(struct word *word, uint64_t *cpu_out)
{
	struct word digits = {.text = word->text};

	while (digits.len < word->len && digits.text[digits.len] >= '0' &&
	       digits.text[digits.len] <= '9')
		digits.len++;
	word->text += digits.len;
	word->len -= digits.len;
	return read_number(digits, cpu_out) && *cpu_out < CPU_SETSIZE;
}

static bool take_char(struct word *word, char c)
{
	if (!word->len || *word->text != c)
		return false;
	word->text++;
	word->len--;
	return true;
}

/* Numbers and ranges of numbers, separated by commas. */
static bool read_cpus(struct word word, cpu_set_t *cpus)
{
	uint64_t first, last;

	do {
		if (!take_cpu(&word, &first))
			return false;
		last = first;
		if (take_char(&word, '-') && (!take_cpu(&word, &last) || last < first))
			return false;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
	} while (take_char(&word, ','));
	return word.len == 0;
}

static int set_cpus(void *value, const char *name, struct word word)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (!read_cpus(word, &cpus))
		return refuse("%s: \"%.*s\" is not a list of processors from 0 to %d, such as "
			      "0-1,3",
			      name, shown_len(word), word.text, CPU_SETSIZE - 1);
	memcpy(value, &cpus, sizeof(cpus));
	return 0;
}

/* Sets one value. `name` is for the message: the key or the environment variable. */
static int set_value(struct core_settings *values, const struct setting *setting, const char *name,
		     struct word word)
{
	uint64_t value;

	if (setting->set)
		return setting->set((char *)values + setting->offset, name, word);
	if (setting->words) {
		char list[96];

		for (size_t i = 0; setting->words[i]; i++) {
			if (strlen(setting->words[i]) == word.len &&
			    memcmp(setting->words[i], word.text, word.len) == 0) {
				*setting_value(values, setting) = i;
				return 0;
			}
		}
		list_words(setting->words, list, sizeof(list));
		return refuse("%s: \"%.*s\" is not %s", name, shown_len(word), word.text, list);
	}
	if (!read_number(word, &value) || value < setting->min || value > setting->max)
		return refuse("%s: \"%.*s\" is not a number from %" PRIu64 " to %" PRIu64 " (%s)",
			      name, shown_len(word), word.text, setting->min, setting->max,
			      setting->unit);
	*setting_value(values, setting) = value;
	return 0;
}

static int read_setting(struct reader *reader, struct word word, size_t key_len)
{
	struct word value = {word.text + key_len + 1, word.len - key_len - 1};

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings_table[i];

		if (strlen(setting->key) != key_len ||
		    memcmp(setting->key, word.text, key_len) != 0)
			continue;
		if (reader->is_given[i])
			return refuse("%s is given twice", setting->key);
		reader->is_given[i] = true;
		return set_value(&reader->values, setting, setting->key, value);
	}
	return refuse("\"%.*s\": there is no such setting", shown_len(word), word.text);
}

/* A word without "=": the device, or after it its port, which core_settings_port returns. */
static int read_bare(struct reader *reader, struct word word)
{
	if (!reader->device.text) {
		if (word.len >= CORE_DEVICE_MAX)
			return refuse("the device \"%.*s...\" is longer than %d characters",
				      shown_len(word), word.text, CORE_DEVICE_MAX - 1);
		reader->device = word;
		return 0;
	}
	if (!reader->port.text && is_number(word)) {
		reader->port = word;
		return 0;
	}
	return refuse("\"%.*s\" after the device \"%.*s\": only one device can be named",
		      shown_len(word), word.text, shown_len(reader->device), reader->device.text);
}

static int read_words(struct reader *reader, const char *text)
{
	for (;;) {
		struct word word;
		const char *equals;
		int rc;

		while (is_blank(*text))
			text++;
		if (!*text)
			return 0;
		word.text = text;
		while (*text && !is_blank(*text))
			text++;
		word.len = (size_t)(text - word.text);
		equals = memchr(word.text, '=', word.len);
		rc = equals ? read_setting(reader, word, (size_t)(equals - word.text))
			    : read_bare(reader, word);
		if (rc)
			return rc;
	}
}

/* DAT_ and the key in capitals. */
static void variable_name(const struct setting *setting, char name_out[KEY_MAX])
{
	size_t len = (size_t)snprintf(name_out, KEY_MAX, "DAT_%s", setting->key);

	for (size_t i = 0; i < len && i < KEY_MAX - 1; i++) {
		if (name_out[i] >= 'a' && name_out[i] <= 'z')
			name_out[i] = (char)(name_out[i] - 'a' + 'A');
	}
}

/* An empty variable counts as unset. */
static int read_environment(struct core_settings *values)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char name[KEY_MAX];
		const char *text;
		int rc;

		variable_name(&settings_table[i], name);
		text = secure_getenv(name);
		if (!text || !*text)
			continue;
		rc = set_value(values, &settings_table[i], name, (struct word){text, strlen(text)});
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_name(const char *variable, const char *name, size_t len)
{
	return strlen(variable) == len && !memcmp(variable, name, len);
}

static bool is_known(const char *name, size_t len)
{
	/* read by the registry, by core/base/log.c and by libdat-check */
	static const char *const others[] = {
		"DAT_OVERRIDE",	       "DAT_DBG_TYPE",	 "DAT_DBG_DEST",    "DAT_OPENDAT_DEFAULT",
		"DAT_OPENDAT_REPLACE", "DAT_CHECK",	 "DAT_CHECK_OFF",   "DAT_CHECK_FILE",
		"DAT_TRACE",	       "DAT_TRACE_FILE", "DAT_TRACE_CALLS", "DAT_TRACE_EPS",
		"DAT_TRACE_ADAPTER",   "DAT_TRACE_WIRE", "DAT_TRACE_COUNTS"};
	char variable[KEY_MAX];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (is_name(others[i], name, len))
			return true;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		variable_name(&settings_table[i], variable);
		if (is_name(variable, name, len))
			return true;
	}
	return false;
}

void core_settings_unknown(void (*report)(const char *name, int len))
{
	/* a program with raised privileges ignores all of them (secure_getenv) */
	if (getauxval(AT_SECURE) || !environ)
		return;
	for (char **entry = environ; *entry; entry++) {
		size_t len = strcspn(*entry, "=");

		if (!strncmp(*entry, "DAT_", 4) && !is_known(*entry, len))
			report(*entry, (int)len);
	}
}

int core_settings_parse(const char *instance_data, char device_out[CORE_DEVICE_MAX],
			struct core_settings *settings_out, const char **message_out)
{
	struct reader reader = {0};
	int rc;

	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].set)
			*setting_value(&reader.values, &settings_table[i]) =
				settings_table[i].initial;
	rc = read_words(&reader, instance_data ? instance_data : "");
	if (rc == 0 && !reader.device.text)
		rc = refuse("no device is named (a network interface or an address)");
	if (rc == 0)
		rc = read_environment(&reader.values);
	if (rc) {
		if (message_out)
			*message_out = settings_message;
		return rc;
	}
	memcpy(device_out, reader.device.text, reader.device.len);
	device_out[reader.device.len] = '\0';
	*settings_out = reader.values;
	return 0;
}

uint32_t core_settings_port(const char *instance_data)
{
	struct reader reader;
	uint64_t port = 0;

	memset(&reader, 0, sizeof(reader));
	if (instance_data && !read_words(&reader, instance_data) && reader.port.text)
		(void)read_number(reader.port, &port);
	return port <= UINT8_MAX ? (uint32_t)port : 0;
}

/* The text behind "key=" in the instance data. text NULL: it is not there. */
static struct word find_given(const char *text, const char *key)
{
	size_t key_len = strlen(key);

	for (;;) {
		size_t len;

		while (is_blank(*text))
			text++;
		for (len = 0; text[len] && !is_blank(text[len]); len++)
			continue;
		if (!len)
			return (struct word){NULL, 0};
		if (len > key_len && text[key_len] == '=' && !memcmp(text, key, key_len))
			return (struct word){text + key_len + 1, len - key_len - 1};
		text += len;
	}
}

/* The text of the default: "none" if it is no number or word. */
static void initial_text(const struct setting *setting, char *text, size_t size)
{
	if (setting->set)
		snprintf(text, size, "none");
	else if (setting->words)
		snprintf(text, size, "%s", setting->words[setting->initial]);
	else
		snprintf(text, size, "%" PRIu64, setting->initial);
}

void core_settings_list(const char *instance_data,
			void (*report)(void *context, const struct core_setting_shown *setting),
			void *context)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings_table[i];
		struct core_setting_shown shown = {.key = setting->key, .unit = setting->unit};
		struct word given = find_given(instance_data, setting->key);
		char variable[KEY_MAX];
		const char *text;

		variable_name(setting, variable);
		text = secure_getenv(variable);
		if (text && *text) {
			shown.variable = variable;
			snprintf(shown.value, sizeof(shown.value), "%s", text);
		} else if (given.text) {
			shown.is_in_instance_data = true;
			snprintf(shown.value, sizeof(shown.value), "%.*s", (int)given.len,
				 given.text);
		} else {
			initial_text(setting, shown.value, sizeof(shown.value));
		}
		report(context, &shown);
	}
}

size_t core_settings_describe(char *text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings_table[i];
		char variable[KEY_MAX];
		char range[96];
		char initial[32];

		variable_name(setting, variable);
		initial_text(setting, initial, sizeof(initial));
		if (setting->set) {
			snprintf(range, sizeof(range), "%s", setting->range);
		} else if (setting->words) {
			list_words(setting->words, range, sizeof(range));
		} else {
			snprintf(range, sizeof(range), "%" PRIu64 " to %" PRIu64 " %s",
				 setting->min, setting->max, setting->unit);
		}
		len += (size_t)snprintf(len < size ? text + len : NULL, len < size ? size - len : 0,
					"%-17s %-21s %-23s default %-6s %s\n", setting->key,
					variable, range, initial, setting->help);
	}
	return len;
}
