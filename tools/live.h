// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a running process, read from outside (shared/stat.h). The process is not trusted:
 * every number, address and text that is read is checked or only shown, every loop and allocation
 * has a limit that does not depend on the process, and reads that block are given up.
 */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "shared/stat.h"

#define LIVE_WAIT_S 5		/* the longest time for all processes together */
#define LIVE_LIBRARIES 8	/* provider libraries of one process */
#define LIVE_CELLS (1u << 21)	/* cells of one library */
#define LIVE_OBJECTS (1u << 18) /* objects of one process; those beyond are not shown */
#define LIVE_INSTANCES 256u	/* instances of one process */
#define LIVE_VALUES 32		/* members of one object */
#define LIVE_TYPES 16		/* types of handles, with room */

/* --- memory --- */

/* Where bytes come from: a process, or a test. */
struct live_memory {
	/* 0: all bytes were read; else -errno. `to` may be overwritten in both cases. */
	int (*read)(void *context, uint64_t address, void *to, size_t len);
	void *context;
};

/* --- one process --- */

struct live_object {
	unsigned int type; /* DAT_HANDLE_TYPE */
	uint32_t number;   /* as in messages of the library: "ep 3" */
	uint64_t address;
	uint64_t instance; /* address of its IA */
	uint32_t instance_index;
	struct sockaddr_in6 peer;    /* endpoints; another family than the two of IP: none */
	uint64_t value[LIVE_VALUES]; /* by live_value() */
};

struct live_instance {
	uint64_t address;
	uint32_t number;
	char name[64];
	char device[64];
	struct sockaddr_in6 own;
	char library[64];
	char release[16];
	uint32_t count[LIVE_TYPES]; /* objects of each type */
	uint64_t registered;	    /* bytes */
};

struct live_process {
	pid_t pid;
	char name[32];
	uint64_t time_ns;
	struct live_instance *instances;
	uint32_t instance_count;
	struct live_object *objects; /* of those instances */
	uint32_t object_count;
	bool is_truncated;
};

/* Reads one member of an object; 0 if the library does not have it. */
uint64_t live_value(const struct live_object *object, enum opendat_stat_number number);
/* "ep 3": the object of that type at that address, which the object refers to. 0: none. */
uint32_t live_find(const struct live_process *process, const struct live_object *object,
		   enum opendat_stat_number number);
/* The same object in another state of the process; NULL: it did not exist. */
const struct live_object *live_same(const struct live_process *process,
				    const struct live_object *object);
void live_process_free(struct live_process *process);

/* What the counters of an endpoint mean, however they are stored. */
enum live_op {
	LIVE_SEND,
	LIVE_WRITE,
	LIVE_READ,
	LIVE_BIND,
	LIVE_RECV,
	LIVE_OPS,
};
extern const char *const live_op_names[LIVE_OPS];
uint64_t live_ops(const struct live_object *ep, enum live_op op);
uint64_t live_bytes(const struct live_object *ep, enum live_op op);
/* Entries between two counters of a queue; at most its room. */
uint64_t live_outstanding(const struct live_object *object, enum opendat_stat_number head,
			  enum opendat_stat_number tail, enum opendat_stat_number room);
const char *live_state_name(uint64_t state);
const char *live_path_name(uint64_t path);
/* NULL: there is no such type. */
const char *live_type_name(unsigned int type);
uint64_t live_srq_available(const struct live_object *srq);

/* --- finding (live_proc.c, live_note.c) --- */

struct live_library {
	uint64_t base; /* where the start of the file is mapped */
	char name[64]; /* the last part of its path */
};

/* The thread by which the memory of a process can be read: not the main thread if it has ended. */
pid_t live_thread(pid_t pid);
/* The provider libraries that the process of a thread has loaded. Returns their number or -errno.
 */
int live_libraries(pid_t thread, struct live_library found[LIVE_LIBRARIES]);
/* Those of one /proc/PID/maps. Returns their number. */
int live_libraries_parse(FILE *maps, struct live_library found[LIVE_LIBRARIES]);
/* The name of a process, without control characters. */
void live_process_name(pid_t pid, char *name, size_t size);

/* The address of the table in the library that is mapped at `base`. 0: there is none. */
uint64_t live_table(const struct live_memory *memory, uint64_t base);

/* Copies text that another process has, and replaces what is not printable. */
void live_copy_text(char *to, size_t size, const char *from, size_t from_size);

/* --- reading (live_read.c, live_process.c) --- */

/* Adds the live instances of one library and their objects. 0 or -errno. */
int live_read(const struct live_memory *memory, const struct live_library *library,
	      struct live_process *process);
/* Drops instances of other names (NULL: none) and objects without an instance; counts the rest. */
void live_settle(struct live_process *process, const char *adapter);

/* What became of the read of one process. */
struct live_answer {
	pid_t pid;
	/*
	 * 0 also if the process has no adapter open: then instance_count is 0. -ENOENT: no library
	 * that has a table; -EPERM, -ESRCH, -ETIMEDOUT, -EPROTO, ...
	 */
	int rc;
	bool has_library; /* it has loaded a provider library, or nothing is known of that */
	struct live_process *process; /* NULL unless rc is 0 */
};

/* The processes of this user, as root of all users, without this one: `pid` is set. The caller
 * frees the array. Nothing of them is read yet. */
struct live_answer *live_candidates(size_t *count_out);
/* Reads those processes, all of them within LIVE_WAIT_S: sets the rest of each answer. */
void live_read_processes(struct live_answer *answers, size_t count, const char *adapter);
/* Prints the reason of such a failure. */
void live_complain(pid_t pid, int rc);

/* --- output --- */

struct live_list {
	struct live_process **processes;
	size_t count;
};

/* `before`: the previous state, for rates; NULL: show totals. */
void live_print_text(FILE *out, const struct live_process *process,
		     const struct live_process *before);
void live_print_list(FILE *out, const struct live_list *list);
void live_print_json(FILE *out, const struct live_list *list);
void live_print_metrics(FILE *out, const struct live_list *list);

#endif
