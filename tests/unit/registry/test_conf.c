// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reader of dat.conf from the inside: what a line means, and which lines are skipped and why.
 */
#include "registry/conf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEN_MAX 16

struct seen_entry {
	unsigned int line;
	char *name;
	uint32_t version_major;
	uint32_t version_minor;
	bool is_thread_safe;
	bool is_default;
	char *library;
	char *provider_version;
	char *instance_data;
	char *platform_data;
};

struct seen {
	struct seen_entry entries[SEEN_MAX];
	int entry_count;
	unsigned int skipped[SEEN_MAX];
	const char *reasons[SEEN_MAX];
	int skipped_count;
	int stop_with;
};

static int entry_see(void *context, const struct registry_conf_entry *entry)
{
	struct seen *seen = context;
	struct seen_entry *copy = &seen->entries[seen->entry_count++];

	assert_true(seen->entry_count <= SEEN_MAX);
	copy->line = entry->line;
	copy->name = strdup(entry->name);
	copy->version_major = entry->version_major;
	copy->version_minor = entry->version_minor;
	copy->is_thread_safe = entry->is_thread_safe;
	copy->is_default = entry->is_default;
	copy->library = strdup(entry->library);
	copy->provider_version = strdup(entry->provider_version);
	copy->instance_data = strdup(entry->instance_data);
	copy->platform_data = strdup(entry->platform_data);
	return seen->stop_with;
}

static void skipped_see(void *context, unsigned int line, const char *reason)
{
	struct seen *seen = context;

	assert_true(seen->skipped_count < SEEN_MAX);
	seen->skipped[seen->skipped_count] = line;
	seen->reasons[seen->skipped_count++] = reason;
}

static const struct registry_conf_ops ops = {.entry = entry_see, .skipped = skipped_see};

/* The text is copied to its exact size, so that a sanitizer detects a read after its end. */
static struct seen *parse(const char *text, size_t len)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	assert_int_equal(registry_conf_parse(copy, len, &ops, seen), 0);
	free(copy);
	return seen;
}

static void seen_free(struct seen *seen)
{
	int i;

	for (i = 0; i < seen->entry_count; i++) {
		free(seen->entries[i].name);
		free(seen->entries[i].library);
		free(seen->entries[i].provider_version);
		free(seen->entries[i].instance_data);
		free(seen->entries[i].platform_data);
	}
	free(seen);
}

#define REST "threadsafe default lib.so v \"\" \"\"\n"

/* Parses one line: an entry, nothing, or skipped. */
enum line_kind { LINE_ENTRY, LINE_NOTHING, LINE_SKIPPED };

static enum line_kind kind_get(const char *text)
{
	struct seen *seen = parse(text, strlen(text));
	enum line_kind kind = seen->entry_count	    ? LINE_ENTRY
			      : seen->skipped_count ? LINE_SKIPPED
						    : LINE_NOTHING;

	assert_true(seen->entry_count + seen->skipped_count <= 1);
	seen_free(seen);
	return kind;
}

/* Field 7 of a line as the parser returns it. */
static void instance_must_be(const char *field, const char *value)
{
	char text[256];
	struct seen *seen;

	snprintf(text, sizeof(text), "a u1.2 threadsafe default lib.so v %s \"\"\n", field);
	seen = parse(text, strlen(text));
	assert_int_equal(seen->entry_count, 1);
	assert_string_equal(seen->entries[0].instance_data, value);
	seen_free(seen);
}

/* CONF-06: the order of the fields. */
static void conf_parse__one_entry__eight_fields(void **state)
{
	static const char text[] =
		"ib0 u1.2 nonthreadsafe default /usr/lib/x.so dapl.1.2 \"ib0 0\" \"plat\"\n";
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 1);
	assert_int_equal(seen->skipped_count, 0);
	assert_int_equal(seen->entries[0].line, 1);
	assert_string_equal(seen->entries[0].name, "ib0");
	assert_int_equal(seen->entries[0].version_major, 1);
	assert_int_equal(seen->entries[0].version_minor, 2);
	assert_false(seen->entries[0].is_thread_safe);
	assert_true(seen->entries[0].is_default);
	assert_string_equal(seen->entries[0].library, "/usr/lib/x.so");
	assert_string_equal(seen->entries[0].provider_version, "dapl.1.2");
	assert_string_equal(seen->entries[0].instance_data, "ib0 0");
	assert_string_equal(seen->entries[0].platform_data, "plat");
	seen_free(seen);
}

/* CONF-07 */
static void conf_parse__any_blanks__same_fields(void **state)
{
	static const char text[] = "a u1.2 " REST " \t a\t\tu1.2 \t" REST
				   "a  u1.2\tthreadsafe\tdefault\tlib.so\tv\t\"\"\t\"\" \t \n";
	struct seen *seen = parse(text, sizeof(text) - 1);
	int i;

	(void)state;
	assert_int_equal(seen->entry_count, 3);
	for (i = 0; i < 3; i++) {
		assert_string_equal(seen->entries[i].name, "a");
		assert_string_equal(seen->entries[i].library, "lib.so");
		assert_string_equal(seen->entries[i].platform_data, "");
	}
	seen_free(seen);
}

/* CONF-08 CONF-11 */
static void conf_parse__comments_and_blank_lines__ignored(void **state)
{
	(void)state;
	assert_int_equal(kind_get("# a u1.2 " REST), LINE_NOTHING);
	assert_int_equal(kind_get(" \t#a\n"), LINE_NOTHING);
	assert_int_equal(kind_get("#\"\n"), LINE_NOTHING);
	assert_int_equal(kind_get("\n"), LINE_NOTHING);
	assert_int_equal(kind_get(" \t \n"), LINE_NOTHING);
	assert_int_equal(kind_get(""), LINE_NOTHING);
}

/* CONF-09 */
static void conf_parse__comment_after_fields__ends_the_line(void **state)
{
	(void)state;
	assert_int_equal(kind_get("a u1.2 threadsafe default l v \"\" \"\" # x \" y\n"),
			 LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l v \"\" #\"\"\n"), LINE_SKIPPED);
}

/* CONF-10 */
static void conf_parse__hash_inside_a_field__is_data(void **state)
{
	(void)state;
	instance_must_be("\"a # b\"", "a # b");
	instance_must_be("a#b", "a#b");
}

/* CONF-12 CONF-13 CONF-14 */
static void conf_parse__quotes__are_resolved(void **state)
{
	(void)state;
	instance_must_be("\"ib0 \t0\"", "ib0 \t0");
	instance_must_be("\"a\\\"b\"", "a\"b");
	instance_must_be("\"a\\\\b\"", "a\\b");
	instance_must_be("\"\\\\\"", "\\");
	instance_must_be("\"a\\nb\"", "a\\nb");
	instance_must_be("\"\"", "");
}

/* CONF-15 */
static void conf_parse__newline_inside_quotes__skipped(void **state)
{
	static const char text[] = "a u1.2 threadsafe default l v \"x\ny\" \"\"\nb u1.2 " REST;
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 1);
	assert_string_equal(seen->entries[0].name, "b");
	assert_int_equal(seen->skipped_count, 2);
	assert_int_equal(kind_get("a u1.2 threadsafe default l v \"\" \"\\\"\n"), LINE_SKIPPED);
	seen_free(seen);
}

/* CONF-16 */
static void conf_parse__no_newline_at_the_end__entry(void **state)
{
	(void)state;
	assert_int_equal(kind_get("a u1.2 threadsafe default l v \"\" \"\""), LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l v i p"), LINE_ENTRY);
}

/* CONF-17 */
static void conf_parse__name_too_long__skipped(void **state)
{
	char text[512], name[300];
	size_t len;

	(void)state;
	for (len = 255; len <= 257; len++) {
		memset(name, 'n', len);
		name[len] = '\0';
		snprintf(text, sizeof(text), "%s u1.2 " REST, name);
		assert_int_equal(kind_get(text), len == 255 ? LINE_ENTRY : LINE_SKIPPED);
	}
}

/* CONF-18 */
static void conf_parse__api_version__major_and_minor(void **state)
{
	static const char text[] =
		"a u1.2 " REST "a u1.10 " REST "a u2.0 " REST "a u4294967295.0 " REST;
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 4);
	assert_int_equal(seen->entries[0].version_minor, 2);
	assert_int_equal(seen->entries[1].version_minor, 10);
	assert_int_equal(seen->entries[2].version_major, 2);
	assert_int_equal(seen->entries[3].version_major, UINT32_MAX);
	seen_free(seen);
}

/* CONF-19: Skipped without a diagnostic. */
static void conf_parse__kernel_entry__ignored(void **state)
{
	(void)state;
	assert_int_equal(kind_get("a k1.2 " REST), LINE_NOTHING);
	assert_int_equal(kind_get("a k1.2 anything goes\n"), LINE_NOTHING);
}

/* CONF-20 */
static void conf_parse__other_api_version__skipped(void **state)
{
	static const char *const versions[] = {
		"1.2",	"U1.2",	 "u1",	  "u1.",  "u.2",   "u",	   "u1.2.3", "u1.2x",
		"ux.2", "u-1.2", "u+1.2", "u1,2", "u 1.2", "\"\"", "u1. 2",  "u4294967296.0"};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(text, sizeof(text), "a %s " REST, versions[i]);
		assert_int_equal(kind_get(text), LINE_SKIPPED);
	}
}

/* CONF-22 CONF-23 */
static void conf_parse__flags__exact_words_only(void **state)
{
	static const char text[] = "a u1.2 threadsafe default l v i p\n"
				   "a u1.2 nonthreadsafe nondefault l v i p\n";
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 2);
	assert_true(seen->entries[0].is_thread_safe);
	assert_true(seen->entries[0].is_default);
	assert_false(seen->entries[1].is_thread_safe);
	assert_false(seen->entries[1].is_default);
	seen_free(seen);
	assert_int_equal(kind_get("a u1.2 ThreadSafe default l v i p\n"), LINE_SKIPPED);
	assert_int_equal(kind_get("a u1.2 threadsafer default l v i p\n"), LINE_SKIPPED);
	assert_int_equal(kind_get("a u1.2 \"\" default l v i p\n"), LINE_SKIPPED);
	assert_int_equal(kind_get("a u1.2 threadsafe yes l v i p\n"), LINE_SKIPPED);
	assert_int_equal(kind_get("a u1.2 threadsafe defaul l v i p\n"), LINE_SKIPPED);
}

/* CONF-26: both dialects. */
static void conf_parse__provider_version__any_text(void **state)
{
	(void)state;
	assert_int_equal(kind_get("a u1.2 threadsafe default l SUNW.1.0 i p\n"), LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l SUNW1.0 i p\n"), LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l dapl.1.2 i p\n"), LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l \"\" i p\n"), LINE_SKIPPED);
}

/* CONF-28 */
static void conf_parse__platform_data__any_text(void **state)
{
	(void)state;
	assert_int_equal(kind_get("a u1.2 threadsafe default l v i \"driver_name=tavor\"\n"),
			 LINE_ENTRY);
	assert_int_equal(kind_get("a u1.2 threadsafe default l v i \"k1.2 # \\\" %s\"\n"),
			 LINE_ENTRY);
}

/* CONF-29 CONF-30: Bad lines are reported with number and reason; all good ones are found. */
static void conf_parse__bad_lines__skipped_and_reported(void **state)
{
	static const char text[] = "a u1.2 threadsafe default l v i\n" /* seven fields */
				   "b u1.2 threadsafe default l v i p\n"
				   "c u1.2 threadsafe default l v i p q\n" /* nine */
				   "\n"
				   "d u1.2 threadsafe default l v \"i p\n" /* unclosed */
				   "e u1.2 threadsafe default l v \"i\"x p\n"
				   "\"\" u1.2 threadsafe default l v i p\n"
				   "f u1.2 threadsafe default \"\" v i p\n"
				   "lonely\n"
				   "g u1.2 threadsafe default l v i p\n";
	static const unsigned int lines[] = {1, 3, 5, 6, 7, 8, 9};
	struct seen *seen = parse(text, sizeof(text) - 1);
	int i;

	(void)state;
	assert_int_equal(seen->entry_count, 2);
	assert_string_equal(seen->entries[0].name, "b");
	assert_int_equal(seen->entries[0].line, 2);
	assert_string_equal(seen->entries[1].name, "g");
	assert_int_equal(seen->entries[1].line, 10);
	assert_int_equal(seen->skipped_count, 7);
	for (i = 0; i < 7; i++) {
		assert_int_equal(seen->skipped[i], lines[i]);
		assert_true(strlen(seen->reasons[i]) > 0);
	}
	seen_free(seen);
}

static void conf_parse__nul_byte__skipped(void **state)
{
	static const char text[] = "a u1.2 threadsafe default l v i\0 p\nb u1.2 " REST;
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 1);
	assert_int_equal(seen->skipped_count, 1);
	seen_free(seen);
}

static void conf_parse__carriage_return__is_part_of_the_newline(void **state)
{
	static const char text[] = "a u1.2 threadsafe default l v i p\r\n\r\n# c\r\n";
	struct seen *seen = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(seen->entry_count, 1);
	assert_string_equal(seen->entries[0].platform_data, "p");
	assert_int_equal(seen->skipped_count, 0);
	seen_free(seen);
}

/* CONF-38: Only the first field has a length limit. */
static void conf_parse__long_fields__arrive_whole(void **state)
{
	enum { LEN = 10000 };
	char *text = malloc(4 * LEN), *field = malloc(LEN + 1);
	struct seen *seen;
	int len;

	(void)state;
	memset(field, 'x', LEN);
	field[LEN] = '\0';
	len = snprintf(text, 4 * LEN, "a u1.2 threadsafe default %s v \"%s\" %s\n", field, field,
		       field);
	seen = parse(text, (size_t)len);
	assert_int_equal(seen->entry_count, 1);
	assert_string_equal(seen->entries[0].library, field);
	assert_string_equal(seen->entries[0].instance_data, field);
	assert_string_equal(seen->entries[0].platform_data, field);
	seen_free(seen);
	free(field);
	free(text);
}

static void conf_parse__callback_fails__stops(void **state)
{
	static const char text[] = "a u1.2 " REST "b u1.2 " REST;
	struct seen *seen = calloc(1, sizeof(*seen));

	(void)state;
	seen->stop_with = -ENOMEM;
	assert_int_equal(registry_conf_parse(text, sizeof(text) - 1, &ops, seen), -ENOMEM);
	assert_int_equal(seen->entry_count, 1);
	seen_free(seen);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_parse__one_entry__eight_fields),
		cmocka_unit_test(conf_parse__any_blanks__same_fields),
		cmocka_unit_test(conf_parse__comments_and_blank_lines__ignored),
		cmocka_unit_test(conf_parse__comment_after_fields__ends_the_line),
		cmocka_unit_test(conf_parse__hash_inside_a_field__is_data),
		cmocka_unit_test(conf_parse__quotes__are_resolved),
		cmocka_unit_test(conf_parse__newline_inside_quotes__skipped),
		cmocka_unit_test(conf_parse__no_newline_at_the_end__entry),
		cmocka_unit_test(conf_parse__name_too_long__skipped),
		cmocka_unit_test(conf_parse__api_version__major_and_minor),
		cmocka_unit_test(conf_parse__kernel_entry__ignored),
		cmocka_unit_test(conf_parse__other_api_version__skipped),
		cmocka_unit_test(conf_parse__flags__exact_words_only),
		cmocka_unit_test(conf_parse__provider_version__any_text),
		cmocka_unit_test(conf_parse__platform_data__any_text),
		cmocka_unit_test(conf_parse__bad_lines__skipped_and_reported),
		cmocka_unit_test(conf_parse__nul_byte__skipped),
		cmocka_unit_test(conf_parse__carriage_return__is_part_of_the_newline),
		cmocka_unit_test(conf_parse__long_fields__arrive_whole),
		cmocka_unit_test(conf_parse__callback_fails__stops),
	};

	return cmocka_run_group_tests_name("registry conf", tests, NULL, NULL);
}
