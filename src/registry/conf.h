// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat.conf, the static registry file: where it is and how it reads. This part needs nothing else
 * of the registry, so that tools and fuzzers can use it alone. One entry is one line of eight
 * fields; the OpenFabrics and the Solaris form differ only in the text of the provider version,
 * which may be anything. A bad line is skipped and reported, and never stops the reading.
 */
#ifndef REGISTRY_CONF_H
#define REGISTRY_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_CONF_NAME_MAX 255 /* characters of an adapter's name */

/* The strings live until the entry callback returns. None is NULL. */
struct registry_conf_entry {
	unsigned int line; /* from 1 */
	const char *name;
	uint32_t version_major;
	uint32_t version_minor;
	bool is_thread_safe;
	bool is_default;
	const char *library;
	const char *provider_version;
	const char *instance_data;
	const char *platform_data;
};

struct registry_conf_ops {
	/* A well-formed user-level entry, of any version. Non-zero stops the parse, which returns
	 * it. */
	int (*entry)(void *context, const struct registry_conf_entry *entry);
	/* A malformed line was skipped; the reason is constant text. May be NULL. */
	void (*skipped)(void *context, unsigned int line, const char *reason);
};

/* Go through a file's text. 0, -ENOMEM, or what the entry callback returned. */
int registry_conf_parse(const char *text, size_t len, const struct registry_conf_ops *ops,
			void *context);

struct registry_conf_file {
	char *text; /* allocated; NULL if there is no file */
	size_t len;
	const char *path; /* the file that was read, or that could not be; valid while the
			     environment is not changed */
	bool is_override; /* DAT_OVERRIDE named it */
};

/*
 * Read the registry file that rules here: what DAT_OVERRIDE names, else the first default place
 * that can be opened. No file at a default place is success without text. -errno: the file of
 * DAT_OVERRIDE cannot be read, or memory is short.
 */
int registry_conf_load(struct registry_conf_file *file_out);
void registry_conf_unload(struct registry_conf_file *file);

#endif
