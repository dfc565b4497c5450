// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of dat_info: the sources of adapters (info_source.c), the attributes of an open adapter
 * (info_attr.c), its settings (info_settings.c), why one does not open (info_log.c, info_why.c), and the listings (dat_info.c).
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <dat/udat.h>

#include "registry/conf.h"

/* One line of the registry file that can serve a 1.x adapter. */
struct info_line {
	struct info_line *next;
	unsigned number;
	char *name;
	char *library;
	char *instance_data;
	DAT_UINT32 version_minor;
	bool is_thread_safe;
};

struct info_skipped {
	struct info_skipped *next;
	unsigned number;
	const char *reason;
};

/* The contents of the registry file. */
struct info_sources {
	struct registry_conf_file file;
	struct info_line *lines;
	struct info_skipped *skipped;
	unsigned other_version_count; /* lines of another API version */
	unsigned nondefault_count;
};

#define INFO_TEXTS_MAX 16u

struct info_texts {
	char *texts[INFO_TEXTS_MAX];
	unsigned count;
};

/* An adapter and everything that is printed about it. */
struct info_adapter {
	char name[DAT_NAME_MAX_LENGTH];
	bool is_thread_safe_listed;   /* the registry lists it as thread safe */
	bool is_unsafe_listed;	      /* the registry lists it as not thread safe */
	const struct info_line *line; /* that was opened, or the first; NULL: built in */
	char library[512];	      /* the path that was loaded, or the name to load */
	const char *missing;	      /* the library of its line that this one replaces, or NULL */
	bool is_default;	      /* DAT_OPENDAT_DEFAULT opened another adapter by this name */
	DAT_RETURN open_code;
	struct info_texts reasons; /* why it does not open */
	struct info_texts advice;  /* what to do about it */
	DAT_IA_HANDLE ia;	   /* open while the attributes are shown */
	DAT_IA_ATTR ia_attr;
	DAT_PROVIDER_ATTR *provider_attr; /* NULL: the adapter cannot be opened */
};

int info_sources_read(struct info_sources *sources_out);
void info_sources_free(struct info_sources *sources);
/* "/etc/dat.conf:3" or "built-in" */
const char *info_source_text(const struct info_sources *sources, const struct info_adapter *adapter,
			     char *text, size_t size);

/* Opens the adapter and queries its attributes. The result is in open_code. */
void info_adapter_open(struct info_adapter *adapter);
void info_adapter_close(struct info_adapter *adapter);

/* info_log.c: what the libraries log while an adapter is opened becomes its reasons. */
void info_log_enable(void);
void info_log_begin(void);
void info_log_end(struct info_adapter *adapter);

/* info_why.c: adds reasons and advice to an adapter that does not open. */
void info_why(struct info_adapter *adapter, const struct info_sources *sources);
/* Adds a text that is not there yet. */
void info_text_add(struct info_texts *texts, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void info_texts_free(struct info_texts *texts);

/* info_advice.c: adds what to do about the reasons that the libraries gave. */
void info_advise(struct info_adapter *adapter);
/* Drops the texts that contain that part. */
void info_texts_drop(struct info_texts *texts, const char *part);

/* info_settings.c: the settings of an open adapter of OpenDAT, each with where it comes from. */
void info_settings_print(const struct info_adapter *adapter, const struct info_sources *sources);
/* Prints the member `"settings": [...], ` of a JSON object, if it is such an adapter. */
void info_settings_print_json(const struct info_adapter *adapter,
			      const struct info_sources *sources);

void info_attr_print(const struct info_adapter *adapter);
/* Prints the members `"ia": {...}, "provider": {...}` of a JSON object. */
void info_attr_print_json(const struct info_adapter *adapter);

/* ---- info_checks.c ---- */

/* Prints the rules of the provider that checks. Returns the exit status. */
int info_checks_print(void);

#endif
