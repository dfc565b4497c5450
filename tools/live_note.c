// SPDX-License-Identifier: BSD-2-Clause
/* Finds the table of shared/stat.h in a library that a process has mapped, by its ELF note. */
#include <elf.h>
#include <string.h>

#include "live.h"

#define HEADERS_MAX 64u /* program headers of a library */
#define NOTES_MAX 4096u /* bytes of one segment of notes */

static int read_at(const struct live_memory *memory, uint64_t address, void *to, size_t len)
{
	return memory->read(memory->context, address, to, len);
}

/* The offset behind `len` bytes at `at`, rounded up; the end if that is beyond it. */
static size_t skip(size_t at, uint64_t len, size_t align, size_t end)
{
	if (len > end - at)
		return end;
	at = (at + (size_t)len + align - 1) & ~(align - 1);
	return at < end ? at : end;
}

/* Looks through the notes of one segment. Returns the offset of the descriptor of ours; 0: none. */
static size_t find_note(const unsigned char *notes, size_t len, size_t align)
{
	static const char name[] = OPENDAT_STAT_NOTE_NAME;
	Elf64_Nhdr note;
	size_t at = 0;

	while (len - at > sizeof(note)) {
		size_t name_at = at + sizeof(note);
		size_t desc_at;

		memcpy(&note, notes + at, sizeof(note));
		desc_at = skip(name_at, note.n_namesz, align, len);
		if (note.n_type == OPENDAT_STAT_NOTE_TYPE && note.n_namesz == sizeof(name) &&
		    note.n_descsz == sizeof(uint64_t) && len - desc_at >= sizeof(uint64_t) &&
		    !memcmp(notes + name_at, name, sizeof(name)))
			return desc_at;
		at = skip(desc_at, note.n_descsz, align, len);
	}
	return 0;
}

static uint64_t table_of_segment(const struct live_memory *memory, uint64_t bias,
				 const Elf64_Phdr *header)
{
	uint64_t start = bias + header->p_vaddr;
	unsigned char notes[NOTES_MAX];
	uint64_t distance;
	size_t at;

	if (header->p_memsz > sizeof(notes) ||
	    read_at(memory, start, notes, (size_t)header->p_memsz))
		return 0;
	at = find_note(notes, (size_t)header->p_memsz, header->p_align == 8 ? 8 : 4);
	if (!at)
		return 0;
	memcpy(&distance, notes + at, sizeof(distance));
	return start + at + distance;
}

/* The difference between addresses in the process and in the file. */
static uint64_t find_bias(const Elf64_Phdr *headers, size_t count, uint64_t base)
{
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD && !headers[i].p_offset)
			return base - headers[i].p_vaddr;
	return base;
}

uint64_t live_table(const struct live_memory *memory, uint64_t base)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr file;
	uint64_t table = 0;
	uint64_t bias;

	if (read_at(memory, base, &file, sizeof(file)) ||
	    memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_phentsize != sizeof(Elf64_Phdr) || file.e_phnum > HEADERS_MAX)
		return 0;
	if (read_at(memory, base + file.e_phoff, headers, file.e_phnum * sizeof(*headers)))
		return 0;
	bias = find_bias(headers, file.e_phnum, base);
	for (size_t i = 0; i < file.e_phnum && !table; i++)
		if (headers[i].p_type == PT_NOTE)
			table = table_of_segment(memory, bias, &headers[i]);
	return table;
}
