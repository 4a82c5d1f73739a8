"""What errors of file calls mean. Files return their errors by default (MPI 4.1, section 14.7), so
a kernel that does not look at what a call returns goes on with nothing read."""

_MODES = "MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR"

# class -> (pattern, what is wrong, what to do)
MEANINGS = {
    "MPI_ERR_NO_SUCH_FILE": (
        "no such file", "there is no file of this name",
        "Is the path right, seen from the directory in which the ranks run? With MPI_MODE_CREATE "
        "the file is made where it is missing."),
    "MPI_ERR_FILE": (
        "invalid file", "the file handle is not, or no longer, valid",
        "It is MPI_FILE_NULL: the file was closed already, or MPI_File_open failed and nobody "
        "looked at what it returned."),
    "MPI_ERR_AMODE": (
        "invalid access mode", "the access modes do not go together",
        f"Exactly one of {_MODES}; MPI_MODE_CREATE and MPI_MODE_EXCL not with MPI_MODE_RDONLY. "
        "The same on all ranks."),
    "MPI_ERR_ACCESS": (
        "no access to the file", "the file may not be opened or used in this way",
        f"Compare the access mode of MPI_File_open ({_MODES}) with the call, and look at the "
        "permissions of the file."),
    "MPI_ERR_READ_ONLY": (
        "no access to the file", "the file was opened for reading only",
        "A file that is written to has to be opened with MPI_MODE_WRONLY or MPI_MODE_RDWR."),
    "MPI_ERR_FILE_EXISTS": (
        "", "there is a file of this name already",
        "With MPI_MODE_EXCL a file has to be new: delete the old one, or leave the mode out."),
    "MPI_ERR_FILE_IN_USE": (
        "", "the file is still open somewhere", "Close it on all ranks before it is deleted."),
    "MPI_ERR_BAD_FILE": (
        "", "the name of the file cannot be used", "Is it empty, or too long?"),
    "MPI_ERR_NO_SPACE": ("", "the disk is full", "Nothing is wrong with the kernel: make room."),
    "MPI_ERR_QUOTA": ("", "the quota is used up", "Nothing is wrong with the kernel: make room."),
    "MPI_ERR_IO": (
        "", "the operating system could not do it",
        "Look at the offset and the size that the call asks for, then at the disk."),
    "MPI_ERR_UNSUPPORTED_OPERATION": (
        "", "the file cannot do that",
        "A view or a file pointer does not go with the access mode."),
    "MPI_ERR_INFO": ("", "the info object is not, or no longer, valid",
                     "It comes from MPI_Info_create, and is freed after its last use; or it is "
                     "MPI_INFO_NULL."),
    "MPI_ERR_INFO_KEY": ("", "the key of the hint is too long", "Look at the names of the hints."),
    "MPI_ERR_INFO_VALUE": ("", "the value of the hint is too long", "A value is a short text."),
}  # fmt: skip
VIEW = (
    "invalid view", "the view cannot be had",
    "The displacement is in bytes, 0 or more; the filetype has to be made of whole etypes, with no "
    "element before the one that precedes it; etype and filetype have to be committed.",
)  # fmt: skip
NEGATIVE = (
    "negative offset", "",
    "An offset counts the etypes of the view (bytes, as long as no view was set) from its "
    "beginning, 0 or more. Look at the subtraction that it comes from, and whether int was too "
    "small for it: use MPI_Offset.",
)  # fmt: skip


def explained(call, name):
    """(pattern, what is wrong, what to do) of a file call that failed with this class of errors;
    None for another call, or where the class itself says it all."""
    if not call.name.startswith("MPI_File_"):
        return None
    if call.name == "MPI_File_set_view" and name in ("MPI_ERR_ARG", "MPI_ERR_OTHER"):
        return VIEW
    if "_at" in call.name and call.offset < 0 and name in ("MPI_ERR_ARG", "MPI_ERR_OTHER"):
        pattern, _, hint = NEGATIVE
        return pattern, f"the offset is {call.offset}", hint
    return MEANINGS.get(name)
