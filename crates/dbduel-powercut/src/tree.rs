//! Conversion between images and folders of another file system.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use crate::change::NewNode;
use crate::content::PAGE;
use crate::image::{Image, Ino, Node, ROOT};
use crate::volume::{Volume, WriteMode};

/// Size of the read buffer, bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// The tree below a folder as an image. Sockets and pipes are left out; zeros become holes.
///
/// # Errors
/// Something cannot be read; the text names it.
pub fn read_tree(root: &Path) -> io::Result<Image> {
    let metadata = fs::metadata(root).map_err(|error| named(&error, "read", root))?;
    let volume = Volume::new(Image::empty(metadata.uid(), metadata.gid()));
    let mut folders = vec![(root.to_path_buf(), ROOT)];
    volume.set_attributes(ROOT, Some(metadata.mode()), None, None)?;
    while let Some((folder, parent)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| named(&error, "read", &folder))? {
            let entry = entry?;
            let path = entry.path();
            let failed = |error: io::Error| named(&error, "read", &path);
            let metadata = fs::symlink_metadata(&path).map_err(failed)?;
            let create = |node| {
                let owner = (metadata.uid(), metadata.gid());
                volume.create(parent, &entry.file_name(), node, metadata.mode(), owner)
            };
            if metadata.is_dir() {
                folders.push((path, create(NewNode::Directory)?));
            } else if metadata.is_symlink() {
                create(NewNode::Link(fs::read_link(&path).map_err(failed)?))?;
            } else if metadata.is_file() {
                read_file(&volume, create(NewNode::File)?, &path).map_err(failed)?;
            }
        }
    }
    Ok(volume.image())
}

fn read_file(volume: &Volume, ino: Ino, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut offset = 0;
    loop {
        let length = file.read_at(&mut buffer, offset)?;
        if length == 0 {
            return Ok(volume.set_size(ino, offset)?);
        }
        for (number, page) in buffer[..length].chunks(PAGE as usize).enumerate() {
            if page.iter().any(|&byte| byte != 0) {
                let at = offset + number as u64 * PAGE;
                volume.write(ino, at, page, WriteMode::default())?;
            }
        }
        offset += length as u64;
    }
}

/// Writes an image to a folder that does not exist yet, with its holes.
///
/// # Errors
/// Something cannot be written; the text names it.
pub fn write_tree(image: &Image, root: &Path) -> io::Result<()> {
    let failed = |error: io::Error, path: &Path| named(&error, "write", path);
    fs::create_dir(root).map_err(|error| failed(error, root))?;
    let mut folders = vec![(ROOT, root.to_path_buf())];
    while let Some((folder, path)) = folders.pop() {
        for (name, &ino) in image.entries(folder).into_iter().flatten() {
            let path = path.join(name);
            let Some(inode) = image.get(ino) else {
                continue;
            };
            match &inode.node {
                Node::Directory(_) => {
                    fs::create_dir(&path).map_err(|error| failed(error, &path))?;
                    folders.push((ino, path.clone()));
                }
                Node::Link(target) => {
                    symlink(target, &path).map_err(|error| failed(error, &path))?;
                    continue;
                }
                Node::File(content) => {
                    let write = || -> io::Result<()> {
                        let file = File::create_new(&path)?;
                        file.set_len(content.size())?;
                        let mut at = 0;
                        while let Some(data) = content.next_data(at) {
                            let end = data.end.min(data.start + BUFFER_BYTES as u64);
                            file.write_all_at(
                                &content.read(data.start, end - data.start),
                                data.start,
                            )?;
                            at = end;
                        }
                        Ok(())
                    };
                    write().map_err(|error| failed(error, &path))?;
                }
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(inode.mode))
                .map_err(|error| failed(error, &path))?;
        }
    }
    Ok(())
}

fn named(error: &io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("could not {what} `{}`: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("deep/er")).unwrap();
        let mut bytes = vec![0; 3_000_001];
        bytes[5] = 1;
        bytes[2_999_999] = 2;
        fs::write(from.join("deep/er/page"), &bytes).unwrap();
        fs::write(from.join("empty"), "").unwrap();
        fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("empty", from.join("link")).unwrap();
        let image = read_tree(&from).unwrap();
        assert!(image.allocated() <= 3 * PAGE);
        let to = dir.path().join("to");
        write_tree(&image, &to).unwrap();
        assert_eq!(fs::read(to.join("deep/er/page")).unwrap(), bytes);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("empty"));
        let mode = fs::metadata(to.join("empty")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(write_tree(&image, &to).is_err());
    }
}
